"""Which pods match the webhook, and which match the policy in the API server."""

from typing import Any

import msgspec
import pytest

from policies import contract
from policies.pod import Pod, slots
from policies.request import asks_for_share
from tests.manifests.admission import BASE, NODE, policy, policy_spec, stored, webhook_conditions
from tests.manifests.render import OVERLAYS, Object, render
from tests.policies.pods import GPU, TIMESLICED, VGPU, container, limited, pod, policies

WEBHOOK = webhook_conditions(BASE)
POLICY = policy(BASE)
CLUSTER = policies().cluster
MIRROR = "kubernetes.io/config.mirror"


def requesting(resource: str) -> Object:
    return container(resources={"requests": {resource: "1"}})


ASKING: dict[str, Object] = {
    "annotation": pod("0.2"),
    "malformed annotation": pod("nonsense"),
    "empty annotation": pod(""),
    "alias": pod(None, annotations={contract.SHARE_ANNOTATION_ALIAS: "0.2"}),
    "annotation of a container": pod(None, annotations={"container.gpu-share.dev/main": "0.2"}),
    "annotation of no container": pod(None, annotations={"container.gpu-share.dev/": "0.2"}),
    "limit": pod(None, limited()),
    "limit of the other strategy": pod(None, limited(resource=TIMESLICED)),
    "limit of whole GPUs": pod(None, limited(resource=GPU)),
    "request alone": pod(None, requesting(VGPU)),
    "request of whole GPUs alone": pod(None, requesting(GPU)),
    "second container": pod(None, container("a"), limited("b")),
    "init container": pod(None, initContainers=[limited("i")]),
    "sidecar": pod(None, initContainers=[limited("i", restartPolicy="Always")]),
    "no annotations at all": {"metadata": {"name": "a"}, "spec": {"containers": [limited()]}},
}
NOT_ASKING: dict[str, Object] = {
    "plain": pod(None),
    "bare": {"metadata": {}, "spec": {"containers": [container()]}},
    "whole GPU": pod(None, limited(resource="nvidia.com/gpu")),
    "privileged": pod(None, container(securityContext={"privileged": True}), hostIPC=True, hostPID=True),
    "variables": pod(None, container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])),
    "annotations with names like ours": pod(
        None,
        annotations={"gpu-share-x": "1", "gpu-share.dev/framework": "vllm", "x.container.gpu-share.dev/main": "1"},
    ),
    "resource with a name like ours": pod(None, limited(resource="gpu-share.dev/vgpus")),
    "resource with a name like our whole GPUs": pod(None, limited(resource="gpu-share.dev/gpus")),
    "share in a label": {"metadata": {"labels": {"gpu-share": "0.2"}}, "spec": {"containers": [container()]}},
    "empty lists": pod(None, container(env=[], resources={"limits": {}}), initContainers=[]),
}
CLAIMING: dict[str, Object] = {
    "grant": pod(None, annotations={contract.GRANT_ANNOTATION: "{}"}),
    "label": {"metadata": {"labels": {contract.SHARED_LABEL: "true"}}, "spec": {"containers": [container()]}},
    "label with another value": {
        "metadata": {"labels": {contract.SHARED_LABEL: "no"}},
        "spec": {"containers": [container()]},
    },
}


@pytest.mark.parametrize("name", ASKING)
def test_a_pod_that_asks_for_a_share_matches_webhook_and_policy(name: str) -> None:
    assert WEBHOOK.matches(stored(ASKING[name]))
    assert POLICY.matches(stored(ASKING[name]))


@pytest.mark.parametrize("name", NOT_ASKING)
def test_no_other_pod_matches_webhook_or_policy(name: str) -> None:
    assert not WEBHOOK.matches(stored(NOT_ASKING[name]))
    assert not POLICY.matches(stored(NOT_ASKING[name]))


@pytest.mark.parametrize("name", CLAIMING)
def test_a_pod_that_claims_a_share_without_asking_matches_the_policy(name: str) -> None:
    assert not WEBHOOK.matches(stored(CLAIMING[name]))
    assert POLICY.matches(stored(CLAIMING[name]))


@pytest.mark.parametrize("name", [*ASKING, *NOT_ASKING, *CLAIMING])
def test_every_request_that_the_rules_know_matches_webhook_and_policy(name: str) -> None:
    on = stored((ASKING | NOT_ASKING | CLAIMING)[name])
    read = msgspec.convert(on, Pod)
    if asks_for_share(read, slots(read), CLUSTER):
        assert WEBHOOK.matches(on)
        assert POLICY.matches(on)


@pytest.mark.parametrize("name", ASKING)
def test_mirror_pods_of_kubelets_match_neither_webhook_nor_policy(name: str) -> None:
    on = stored(ASKING[name])
    on["metadata"]["annotations"] = on["metadata"].get("annotations", {}) | {MIRROR: "0"}
    assert not WEBHOOK.matches(on)
    assert not POLICY.matches(on, groups=NODE)
    assert POLICY.matches(on)  # whoever else says that it is a mirror pod


def test_a_limit_of_zero_is_not_a_request() -> None:
    for resource in (VGPU, TIMESLICED, GPU):
        assert not POLICY.matches(stored(pod(None, limited(quantity=0, resource=resource))))


def test_the_conditions_name_what_the_contract_names() -> None:
    (configuration,) = (one for one in BASE if one["kind"] == "MutatingWebhookConfiguration")
    asking = configuration["webhooks"][0]["matchConditions"][1]["expression"]
    looking = policy_spec(BASE)["matchConditions"][1]["expression"]
    for expression in (asking, looking):
        for name in (contract.SHARE_ANNOTATION, contract.SHARE_ANNOTATION_ALIAS, contract.CONTAINER_ANNOTATION_PREFIX):
            assert f"'{name}'" in expression
        assert f"[{', '.join(map(repr, contract.DEFAULT_RESOURCE_NAMES.values()))}]" in expression
    resources = policy_spec(BASE)["variables"][0]
    assert (
        resources["name"] == "resources"
    )  # the strategies' own, in the order in which the pattern of a grant has them
    assert resources["expression"] == f"[{', '.join(map(repr, contract.DEFAULT_RESOURCE_NAMES.values()))}]"
    assert list(contract.DEFAULT_RESOURCE_NAMES) == [contract.MPS, contract.TIME_SLICING, contract.WHOLE]
    assert f"'{contract.GRANT_ANNOTATION}'" in looking
    assert f"'{contract.SHARED_LABEL}'" in looking


def test_the_aws_overlay_has_the_same_expressions_for_its_resource() -> None:
    (directory,) = (overlay for overlay in OVERLAYS if overlay.name == "aws-resource")
    overlay = render(directory)
    assert expressions(overlay) == [
        text.replace("'gpu-share.dev/vgpu'", "'k8s.amazonaws.com/vgpu'") for text in expressions(BASE)
    ]
    aws = stored(pod(None, limited(resource="k8s.amazonaws.com/vgpu")))
    assert webhook_conditions(overlay).matches(aws)
    assert webhook_conditions(overlay, contract.RESTRICTED_WEBHOOK_NAME).matches(aws)
    assert policy(overlay).matches(aws)
    assert not WEBHOOK.matches(aws)
    assert not POLICY.matches(aws)


def expressions(objects: list[Object]) -> list[str]:
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(inner for key, inner in value.items() if key.lower().endswith("expression"))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk([one for one in objects if "admissionregistration" in one["apiVersion"]])
    assert len(found) > 20
    return found
