"""Preview and the API server agree on a pod, whatever the policy's mode and the namespace's label for that mode say."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from policies.contract import HOST_PATHS_ANNOTATION, MODE_LABEL
from policies.grant import Denied, Grant
from policies.pod import Pod
from tests.manifests.admission import BASE, policy, selects, stored
from tests.manifests.granted_pods import granted
from tests.manifests.render import Object
from tests.policies.pods import container, decided, limited, pod, policies
from tests.webhook.commands import preview, run
from webhook.patch import operations
from webhook.preview.output import show_explained
from webhook.preview.previewed import Previewed, patch_pod
from webhook.preview.previewed import preview as previewed
from webhook.preview.workloads import read_input

POLICY = policy(BASE)
SHARED, GRANT, MIRROR = "gpu-share.dev/shared", "gpu-share.dev/grant", "kubernetes.io/config.mirror"
ONE = granted()["one"]["metadata"]["annotations"][GRANT]  # of two vGPUs in the container main
RULES = 'share: {maximum: "0.5"}\nhostPaths: [{path: /data}]\n'
BESIDE = "a Namespace beside the pods says so"
COMMAND = "kubectl label namespace team gpu-share.dev/mode=warn"


def carrying(made: Object, *, grant: str = ONE, label: str | None = "true") -> Object:
    made["metadata"]["annotations"][GRANT] = grant
    made["metadata"]["labels"] = {} if label is None else {SHARED: label}
    return made


def on_path(path: str) -> Object:
    mount = {"name": "d", "mountPath": "/d", "readOnly": True}
    volume = {"name": "d", "hostPath": {"path": path}}
    return pod("0.2", container(volumeMounts=[mount]), volumes=[volume])


PODS = {
    "no share": pod(None),
    "a share": pod("0.2"),
    "more than the policy allows": pod("0.9"),
    "more than it allows by a limit": pod(None, limited(quantity=9)),
    "a share and host access": pod("0.2", hostPID=True),
    "no share that can be read": pod("a lot"),
    "a path that the policy lists": on_path("/data"),
    "a path that it does not list": on_path("/other"),
    "the label of a granted pod": carrying(pod(None), grant=""),
    "a grant and no request": carrying(pod(None), label=None),
    "too much, with an empty grant": carrying(pod("0.9"), grant=""),
    "too much, with a grant and no limit": carrying(pod("0.9")),
    "too much, with a grant of another number": carrying(pod("0.9", limited(quantity=9))),
    "too much, with a grant for one of two": carrying(pod("0.9", limited(), limited("b", 1))),
    "too much, with nonsense for a grant": carrying(pod("0.9", limited(quantity=9)), grant="nonsense"),
    "too much, with a grant and without its label": carrying(pod("0.9", limited()), label=None),
    "too much, with a grant and another label": carrying(pod("0.9", limited()), label="false"),
    "too many annotations": pod("0.2", annotations={f"a{index}": "" for index in range(1025)}),
    "too many volumes": pod("0.2", volumes=[{"name": f"v{index}", "emptyDir": {}} for index in range(257)]),
    "too many variables": pod("0.2", container(env=[{"name": f"V{index}", "value": ""} for index in range(8193)])),
    "too many resources": pod(
        None, *(limited(f"c{at}", 1, f"example.com/r{at}") for at in range(511)), limited("main", 9), *[container("x")]
    ),
    "a share of a mirror pod": pod("0.2", annotations={MIRROR: "5f3c"}),
}
LABELS: dict[str, dict[str, str]] = {"none": {}, "warn": {MODE_LABEL: "warn"}, "enforce": {MODE_LABEL: "enforce"}}


def namespace(labels: dict[str, str], annotation: str | None = None) -> Object:
    annotations = {} if annotation is None else {HOST_PATHS_ANNOTATION: annotation}
    metadata = {"name": "team", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def shown(made: Object, rules: str, *beside: Object) -> tuple[Previewed, str]:
    text = "\n---\n".join(map(json.dumps, (*beside, made)))
    (one,) = previewed(read_input(text, "x"), policies(rules), "team")
    return one, "\n".join(show_explained([one]))


def of_api_server(made: Object, rules: str, on: Object) -> list[str]:
    """What its policy denies of the pod as the webhook leaves it."""
    decision = decided(made, policies(rules))
    ours = operations(msgspec.convert(made, Pod), decision) if isinstance(decision, Grant) else []
    return POLICY.denials(stored(patch_pod(made, ours)), namespace=on)


def denies(labels: dict[str, str]) -> bool:
    (actions,) = (
        one["spec"]["validationActions"]
        for one in BASE
        if one["kind"] == "ValidatingAdmissionPolicyBinding"
        and one["spec"]["policyName"] == "gpu-share"
        and selects(one["spec"]["matchResources"]["namespaceSelector"], labels)
    )
    return "Deny" in actions


@pytest.mark.parametrize("annotation", [None, "/data"])
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("mode", ["enforce", "warn"])
@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_denied_by_the_api_server_where_its_policy_and_its_binding_say_so(
    name: str, mode: str, label: str, annotation: str | None
) -> None:
    made, rules, on = PODS[name], f"mode: {mode}\n{RULES}", namespace(LABELS[label], annotation)
    messages = of_api_server(made, rules, on)
    one, text = shown(made, rules, on)
    by_webhook = isinstance(decided(made, policies(rules)), Denied)
    assert bool(one.denied_after) == (bool(messages) and denies(LABELS[label]) and not by_webhook), text
    assert "is not known" not in text.replace("whether Pod Security enforces baseline or restricted in team", "")
    if messages and not by_webhook and not one.denied_after:
        assert "only warns of it" in text or "Warning: would be denied with" in text
    if not messages:
        assert "only warns of it" not in text


OTHER_WORDS = ("mirror", "path", "another number")


@pytest.mark.parametrize("name", [name for name in PODS if not any(words in name for words in OTHER_WORDS)])
def test_what_it_says_are_the_words_of_the_api_server(name: str) -> None:
    rules, on = f"mode: warn\n{RULES}", namespace({})
    one, text = shown(PODS[name], rules, on)
    messages = of_api_server(PODS[name], rules, on)
    assert one.denied_after.startswith(messages[0] if messages else ""), text
    assert one.denied_after.endswith(COMMAND if messages else "")


@pytest.mark.parametrize("name", PODS)
def test_in_mode_warn_what_depends_on_a_label_that_is_not_known_is_a_warning(name: str) -> None:
    rules = f"mode: warn\n{RULES}"
    one, text = shown(PODS[name], rules)
    assert not one.is_denied
    messages = of_api_server(PODS[name], rules, namespace({}))
    told = text.replace("(a Namespace beside the pods or", "")
    assert (BESIDE in told and "gpu-share.dev/mode=warn" in told) == bool(messages), text


@pytest.mark.parametrize("label", [*LABELS, None])
def test_a_grant_that_fits_a_pod_above_the_maximum_may_be_taken_for_the_webhooks(label: str | None) -> None:
    made = carrying(pod("0.9", limited()))
    beside = [] if label is None else [namespace(LABELS[label])]
    one, text = shown(made, f"mode: warn\n{RULES}", *beside)
    assert not one.is_denied
    assert not POLICY.denials(stored(made))
    assert ("the API server denies it unless all of the pod agrees with that grant" in text) == (label != "warn")


@pytest.mark.parametrize("output", ["explain", "yaml", "diff", "patch"])
def test_without_the_label_the_exit_code_is_1_and_the_webhooks_warning_is_said_too(output: str, tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text(f"mode: warn\n{RULES}")
    text = "\n---\n".join(map(json.dumps, (namespace({}), PODS["more than the policy allows"])))
    said = preview(text, "--policies", tmp_path, "-n", "team", "-o", output, code=1).output
    assert COMMAND in said
    assert "would be denied with ShareAboveMaximum" in said


def test_a_label_that_the_file_leaves_out_is_that_of_the_cluster(tmp_path: Path, monkeypatch: Any) -> None:
    answers = {
        "namespaces": {"apiVersion": "v1", "kind": "List", "items": [namespace({MODE_LABEL: "warn"}, "/data")]},
        "configmap": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"_default.yaml": f"mode: warn\n{RULES}"}},
    }
    script = "#!/bin/sh\n"
    for name, answer in answers.items():
        (tmp_path / name).write_text(json.dumps(answer))
        script += f'case "$*" in *"get {name}"*) /bin/cat {tmp_path}/{name};; esac\n'
    (tmp_path / "kubectl").write_text(script)
    (tmp_path / "kubectl").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    for code, *beside in ((0,), (0, namespace({})), (1, namespace({MODE_LABEL: ""}))):
        text = "\n---\n".join(map(json.dumps, (*beside, pod("0.9"))))
        run("preview", "--cluster", "-n", "team", "-", given=text, code=code)
    listed = "\n---\n".join(map(json.dumps, (namespace({MODE_LABEL: ""}), on_path("/data"))))
    assert "granted" in run("preview", "--cluster", "-n", "team", "-", given=listed).stdout
