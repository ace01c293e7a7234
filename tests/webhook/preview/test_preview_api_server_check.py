"""Preview says what the API server's own policy denies, where the webhook would admit: as its CEL says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.grant import Denied
from tests.manifests.admission import BASE, policy, stored
from tests.manifests.granted_pods import granted
from tests.policies.pods import container, limited, pod, policies
from tests.webhook.commands import preview, run
from tests.webhook.preview.previewed import titles
from webhook.preview.previewed import preview as previewed
from webhook.preview.workloads import read_input

POLICY = policy(BASE)
SHARED, GRANT, MIRROR = "gpu-share.dev/shared", "gpu-share.dev/grant", "kubernetes.io/config.mirror"
GRANTS = [
    "",
    "{}",
    "nonsense",
    *(made["metadata"]["annotations"][GRANT] for name, made in granted().items() if name in ("one", "a MIG instance")),
]
BY = "  The pod is denied by the ValidatingAdmissionPolicy gpu-share of the API server: "


def on(share: str | None = None, *containers: Any, labels: Any = None, **fields: Any) -> dict[str, Any]:
    made = pod(share, *containers, **fields)
    made["metadata"]["labels"] = labels or {}
    return made


def many(count: int) -> dict[str, str]:
    return {f"example.com/r{index}": "1" for index in range(count)}


CLAIMING = {
    "the label": on(labels={SHARED: "true"}),
    "the label with another value": on(labels={SHARED: "false"}),
    "the label beside a framework": on(labels={SHARED: "true"}, annotations={"gpu-share.dev/framework": "vllm"}),
    "the label beside a limit of none": on(None, limited("main", 0), labels={SHARED: "true"}),
    "the label of a mirror pod": on(labels={SHARED: "true"}, annotations={MIRROR: "5f3c"}),
    "a grant": on(annotations={GRANT: "{}"}),
    "a grant and the label": on(labels={SHARED: "true"}, annotations={GRANT: GRANTS[3]}),
    "more containers than the policy reads": on(None, *(container(f"c{index}") for index in range(513))),
}


@pytest.mark.parametrize("name", CLAIMING)
def test_a_pod_that_claims_a_share_and_asks_for_none_is_denied_with_the_words_of_the_api_server(name: str) -> None:
    lines = preview(json.dumps(CLAIMING[name]), code=1).stdout.splitlines()
    message = POLICY.denials(stored(CLAIMING[name]))[0]
    assert lines[1:] == ["Pod default/example: denied by the API server", f"{BY}{message}"]


DENIED = {
    "an empty grant": on(annotations={GRANT: ""}),
    "a grant of partitions": on(
        None, limited("main", "1", "nvidia.com/mig-2g.20gb"), labels={SHARED: "true"}, annotations={GRANT: GRANTS[4]}
    ),
    "more limits than it reads": on(None, container(resources={"limits": many(1025)})),
    "more requests than it reads": on(
        None, container(resources={"limits": many(1000), "requests": {f"b/{at}": "1" for at in range(25)}})
    ),
    "a share of a mirror pod": on("0.2", annotations={MIRROR: "5f3c"}),
    "a limit of a mirror pod": on(None, limited(), annotations={MIRROR: "5f3c"}),
}
ADMITTED = {
    "nothing": on(),
    "as many containers as it reads": on(None, *(container(f"c{index}") for index in range(512))),
    "as many limits as it reads": on(None, container(resources={"limits": many(1024)})),
    "more annotations": on(annotations={f"a{index}": "" for index in range(1025)}),
    "a framework": on(annotations={"gpu-share.dev/framework": "vllm"}),
    "a mirror pod": on(annotations={MIRROR: "5f3c"}),
    "a mirror pod with a grant": on(
        None, limited("main", "2"), labels={SHARED: "true"}, annotations={GRANT: GRANTS[3], MIRROR: "5f3c"}
    ),
    "a GPU of its maker's": on(None, limited("main", 1, "nvidia.com/gpu")),
    "a privileged one": on(None, container(securityContext={"privileged": True}), hostIPC=True, hostPID=True),
}


@pytest.mark.parametrize("name", [*DENIED, *ADMITTED])
def test_preview_and_the_api_server_agree_on_a_pod_that_the_webhook_leaves_as_it_is(name: str) -> None:
    made = (DENIED | ADMITTED)[name]
    assert bool(POLICY.denials(stored(made))) == (name in DENIED)
    preview(json.dumps(made), code=int(name in DENIED))


LABELS = st.dictionaries(st.sampled_from([SHARED, "app", "gpu-share"]), st.sampled_from(["true", "false"]))
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        GRANT: st.sampled_from(GRANTS),
        "gpu-share": st.sampled_from(["0.2", "1"]),
        "gpu-share.dev/framework": st.just("none"),
        "cdi.k8s.io/x": st.just("a/b=0"),
        MIRROR: st.just("5f3c"),
    },
)
RESOURCES = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu", "nvidia.com/mig-2g.20gb", "gpu-share.dev/vgpu", "gpu-share.dev/vgpus"]),
    st.sampled_from(["0", "1", "2"]),
)
CONTAINERS = st.fixed_dictionaries(
    {"image": st.just("i"), "resources": st.fixed_dictionaries({}, optional={"limits": RESOURCES})},
    optional={
        "env": st.just([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]),
        "securityContext": st.just({"privileged": True}),
    },
)


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


@pytest.mark.parametrize("mode", ["enforce", "warn"])
@settings(deadline=None, max_examples=200)
@given(LABELS, ANNOTATIONS, st.lists(CONTAINERS, min_size=1, max_size=2))
def test_no_pod_is_previewed_as_admitted_that_the_api_server_denies(
    mode: str, labels: Any, annotations: Any, ones: Any
) -> None:
    made = on(None, *({"name": ("main", "other")[at], **one} for at, one in enumerate(ones)), labels=labels)
    made["metadata"]["annotations"] = annotations
    text = json.dumps(NAMESPACE) + "\n---\n" + json.dumps(made)
    (one,) = previewed(read_input(text, "x"), policies(f"mode: {mode}"), None)
    if any("comes with a grant" in sentence for sentence in one.oversights):
        return  # of which preview says that it does not know
    assert one.is_denied == (isinstance(one.decision, Denied) or bool(POLICY.denials(stored(one.patched))))


TEMPLATE = {"metadata": {"labels": {SHARED: "true"}}, "spec": {"containers": [container()]}}
DEPLOYMENT = json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": TEMPLATE}})


def test_a_template_with_the_label_of_a_granted_pod_is_denied_and_the_deployments_own_label_means_nothing() -> None:
    assert titles(DEPLOYMENT, code=1) == {"Deployment default/(no name)": "denied by the API server"}
    labelled = json.loads(DEPLOYMENT) | {"metadata": {"labels": {SHARED: "true"}}}
    labelled["spec"]["template"]["metadata"] = {}
    assert titles(json.dumps(labelled)) == {"Deployment default/(no name)": "untouched"}


@pytest.mark.parametrize("output", ["diff", "yaml", "patch"])
def test_the_other_outputs_say_it_on_stderr_and_change_nothing(output: str) -> None:
    result = preview(DEPLOYMENT, "-o", output, code=1)
    assert f"{BY.strip()} The pod has the label {SHARED}" in result.stderr
    assert result.stdout == ("" if output != "yaml" else preview(DEPLOYMENT, "-o", "yaml", "-n", "kube-system").stdout)


@pytest.mark.parametrize("namespace", ["gpu-share", "kube-system"])
@pytest.mark.parametrize("made", [CLAIMING["the label"], CLAIMING["a grant"], on("0.2")])
def test_in_a_namespace_that_gpu_share_is_not_asked_for_nothing_is_granted_or_denied(
    namespace: str, made: dict[str, Any]
) -> None:
    assert titles(json.dumps(made), "-n", namespace) == {f"Pod {namespace}/example": "untouched"}


def test_where_mode_is_warn_it_is_a_warning_that_names_the_label_of_the_namespace(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: warn")
    text = preview(json.dumps(CLAIMING["the label"]), "--policies", tmp_path).stdout
    said = (
        "Warning: whether the namespace has the label gpu-share.dev/mode=warn is not known (a Namespace beside the "
        "pods says so): if it does not, the API server denies the pod: The pod has the label"
    )
    assert "The pod is admitted as it is: it does not ask for a share." in text
    assert said in text


def test_a_mirror_pod_of_a_cluster_is_its_kubelets_and_stays(tmp_path: Path) -> None:
    made = on("0.2", annotations={MIRROR: "5f3c"})
    made["metadata"]["uid"] = "5f3c"
    (tmp_path / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [made]}))
    assert "it mirrors a static pod" in run("preview", tmp_path / "pods.json").stdout
