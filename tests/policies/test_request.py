from typing import Any

import pytest

from policies.quantity import whole
from tests.policies.pods import (
    TIMESLICED,
    VGPU,
    container,
    denied,
    granted,
    limited,
    only,
    pod,
    policies,
    untouched,
    vgpus,
)

LARGE = policies("share: {maximum: '8', podMaximum: '8'}")
TWO = (container("web"), container("sidecar"))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"gpu-share": "0.2"}, {"web": 2}),
        ({"gpu-share": "20%"}, {"web": 2}),
        ({"gpu-share": "0.3"}, {"web": 3}),
        ({"gpu-share": "0.25"}, {"web": 3}),
        ({"gpu-share": "0.001"}, {"web": 1}),
        ({"gpu-share": "1"}, {"web": 10}),
        ({"gpu-share.dev/share": "0.2"}, {"web": 2}),
        ({"gpu-share": "0.2", "gpu-share.dev/share": "20%"}, {"web": 2}),
        ({"container.gpu-share.dev/sidecar": "0.3"}, {"sidecar": 3}),
        ({"gpu-share": "0.2", "container.gpu-share.dev/sidecar": "0.3"}, {"web": 2, "sidecar": 3}),
        ({"gpu-share": "0.2", "container.gpu-share.dev/web": "0.2"}, {"web": 2}),
        ({"gpu-share": "0.2", "kubectl.kubernetes.io/default-container": "sidecar"}, {"sidecar": 2}),
        ({"gpu-share": "0.2", "kubectl.kubernetes.io/default-container": ""}, {"web": 2}),
    ],
)
def test_an_annotation_asks_for_its_container(annotations: dict[str, str], expected: dict[str, int]) -> None:
    assert vgpus(granted(pod(None, *TWO, annotations=annotations), LARGE)) == expected


def test_the_share_is_for_the_first_app_container_not_for_an_init_container() -> None:
    on = pod("0.2", container("web"), initContainers=[container("setup")])
    assert vgpus(granted(on)) == {"web": 2}


def test_an_init_container_and_a_sidecar_can_be_named() -> None:
    first = [container("setup"), container("proxy", restartPolicy="Always")]
    named = {"container.gpu-share.dev/setup": "0.5", "container.gpu-share.dev/proxy": "0.1"}
    assert vgpus(granted(pod("0.2", annotations=named, initContainers=first))) == {"setup": 5, "proxy": 1, "main": 2}


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu-share": "0.2", "gpu-share.dev/share": "0.3"},
        {"gpu-share": "0.2", "container.gpu-share.dev/web": "0.3"},
        {"gpu-share.dev/share": "0.3", "container.gpu-share.dev/web": "20%"},
    ],
)
def test_two_annotations_that_disagree_are_denied(annotations: dict[str, str]) -> None:
    deny = denied(pod(None, *TWO, annotations=annotations))
    assert deny.code == "ConflictingRequest"
    assert "0.2 by" in deny.message
    assert "0.3 by" in deny.message


@pytest.mark.parametrize(
    ("annotations", "name"),
    [
        ({"container.gpu-share.dev/wbe": "0.2"}, "wbe"),
        ({"container.gpu-share.dev/": "0.2"}, '""'),
        ({"gpu-share": "0.2", "kubectl.kubernetes.io/default-container": "gone"}, "gone"),
        ({"gpu-share": "0.2", "framework.gpu-share.dev/gone": "vllm"}, "gone"),
    ],
)
def test_a_container_that_is_not_there_is_denied(annotations: dict[str, str], name: str) -> None:
    deny = denied(pod(None, *TWO, annotations=annotations))
    assert deny.code == "UnknownContainer"
    assert name in deny.message


@pytest.mark.parametrize("spec", [{}, {"containers": []}, {"containers": None}])
def test_a_pod_without_containers_is_left_to_the_api_server(spec: dict[str, Any]) -> None:
    assert "no containers" in untouched({"metadata": {"annotations": {"gpu-share": "0.2"}}, "spec": spec}).reason


@pytest.mark.parametrize("text", ["", "0", "0,2", "1.5", "0.2\n", "\u0660.\u0662", "200m", "two", "0" * 10_000])
@pytest.mark.parametrize("key", ["gpu-share", "gpu-share.dev/share", "container.gpu-share.dev/main"])
def test_a_malformed_share_is_denied_under_every_key(key: str, text: str) -> None:
    deny = denied(pod(None, annotations={key: text}))
    assert deny.code == "ShareMalformed"
    assert key in deny.message
    assert deny.message.isprintable()


@pytest.mark.parametrize(
    ("quantity", "count"),
    [
        ("2", 2),
        (2, 2),
        (2.0, 2),
        ("2.0", 2),
        ("2.", 2),
        ("2000m", 2),
        ("0.002k", 2),
        ("2e0", 2),
        ("20e-1", 2),
        ("2E0", 2),
        ("2000000u", 2),
        ("+2", 2),
        ("0", 0),
        (0, 0),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1Ei", 2**60),
        ("0.5", None),
        (0.5, None),
        ("500m", None),
        ("1n", None),
        ("-1", None),
        (-1, None),
        ("", None),
        (".", None),
        ("NaN", None),
        (float("nan"), None),
        (float("inf"), None),
        ("1e999", None),
        ("0x2", None),
        ("2 ", None),
        ("2\n", None),
        ("\u0662", None),
        ("1_0", None),
        ("2g", None),
        ("9" * 100, None),
        ("9" * 10_000, None),
    ],
)
def test_a_quantity_is_a_whole_number_or_none(quantity: str | float, count: int | None) -> None:
    assert whole(quantity) == count


@pytest.mark.parametrize("quantity", ["2", 2, 2.0, "2.0", "2000m", "2e0", "0.002k"])
def test_a_limit_asks_without_an_annotation(quantity: Any) -> None:
    grant = granted(pod(None, limited("web", quantity)))
    assert vgpus(grant) == {"web": 2}
    assert (only(grant).share, only(grant).share_text, only(grant).asked_by) == (None, "0.2", VGPU)


@pytest.mark.parametrize("quantity", ["0.5", 0.5, "-1", -1, "NaN", "", "two", "500m", "9" * 50])
def test_a_limit_that_is_no_whole_number_is_denied(quantity: Any) -> None:
    deny = denied(pod(None, limited("web", quantity)))
    assert deny.code == "ShareMalformed"
    assert VGPU in deny.message


@pytest.mark.parametrize("quantity", [0, "0", "0.0", "0m", 0.0, "0k", "00", "0e0"])
def test_a_limit_of_zero_asks_for_nothing(quantity: Any) -> None:
    assert untouched(pod(None, limited("web", quantity))).denied is None


@pytest.mark.parametrize(
    ("share", "quantity"), [("0.2", "2"), ("0.25", 3), ("0.25", "3000m"), ("1", "10"), ("20%", 2.0)]
)
def test_annotation_and_limit_may_agree(share: str, quantity: Any) -> None:
    grant = granted(pod(share, limited("web", quantity)), LARGE)
    assert str(only(grant).share) == share.replace("20%", "0.2")


@pytest.mark.parametrize(("share", "quantity"), [("0.2", "3"), ("0.25", "2"), ("0.2", 0), ("1", "1"), ("0.2", "1k")])
def test_annotation_and_limit_that_disagree_are_denied(share: str, quantity: Any) -> None:
    deny = denied(pod(share, limited("web", quantity)))
    assert deny.code == "ConflictingRequest"
    assert share in deny.message
    assert VGPU in deny.message


@pytest.mark.parametrize(
    "resources",
    [
        {"limits": {VGPU: "2"}, "requests": {VGPU: "3"}},
        {"limits": {VGPU: "2"}, "requests": {VGPU: "0"}},
        {"requests": {VGPU: "2"}},
    ],
)
def test_a_request_that_is_not_its_limit_is_denied(resources: dict[str, Any]) -> None:
    assert denied(pod("0.2", container(resources=resources))).code == "ConflictingRequest"


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.5gb",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        TIMESLICED,
    ],
)
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_another_gpu_resource_beside_a_share_is_denied(resource: str, field: str, *, other: bool) -> None:
    greedy = container("beside" if other else "main", resources={field: {resource: 1}})
    deny = denied(pod("0.2", *([container(), greedy] if other else [greedy])))
    assert deny.code == "ConflictingRequest"
    assert resource in deny.message


def test_zero_of_another_gpu_resource_is_no_conflict() -> None:
    assert vgpus(granted(pod("0.2", container(resources={"limits": {"nvidia.com/gpu": "0"}})))) == {"main": 2}


@pytest.mark.parametrize(
    "on",
    [
        pod(None),
        pod(None, container(resources={"limits": {"nvidia.com/gpu": 1}})),
        pod(None, annotations={"gpu-share.dev/framework": "vllm"}),
        pod(None, annotations={"GPU-Share": "0.2", "gpu-share.dev/shares": "0.2", "gpu-share/x": "1"}),
        {"spec": {"containers": [container()]}},
        {"metadata": {}, "spec": {"containers": [container(resources=None)]}},
    ],
)
def test_a_pod_that_asks_for_nothing_is_none_of_our_business(on: dict[str, Any]) -> None:
    assert "does not ask" in untouched(on, policies("enabled: false")).reason


def test_a_cluster_may_call_its_resources_otherwise() -> None:
    aws = policies(cluster="resourceNames: {mps: k8s.amazonaws.com/vgpu}")
    assert granted(pod("0.2"), aws).resource == "k8s.amazonaws.com/vgpu"
    assert vgpus(granted(pod(None, limited("web", 2, "k8s.amazonaws.com/vgpu")), aws)) == {"web": 2}
    untouched(pod(None, limited("web", 2)), aws)


def test_time_slicing_has_its_own_resource() -> None:
    sliced = policies("strategy: time-slicing")
    assert granted(pod("0.2"), sliced).resource == TIMESLICED
    assert vgpus(granted(pod(None, limited("web", 2, TIMESLICED)), sliced)) == {"web": 2}
    deny = denied(pod(None, limited("web", 2)), sliced)
    assert deny.code == "ConflictingRequest"
    assert "(_default.yaml:1)" in deny.message  # where the strategy stands
