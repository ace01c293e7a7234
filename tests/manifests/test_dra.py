"""What the overlays for DRA add: the classes of the shipped grid, and policies that leave claims to the scheduler."""

from typing import Any

import pytest
import yaml

from tests.manifests import device_classes
from tests.manifests.admission import Expressions, policy
from tests.manifests.render import MANIFESTS, ROOT, render

OBJECTS = render(MANIFESTS / "overlays" / "dra")
CLAIMS = policy(OBJECTS, "gpu-share-claims")
TEMPLATES = policy(OBJECTS, "gpu-share-claim-templates")
ALLOCATIONS = policy(OBJECTS, "gpu-share-allocations")
SLICES = policy(OBJECTS, "gpu-share-slices")
OURS = {"name": "r", "exactly": {"deviceClassName": "share-200m.gpu-share.dev"}}
OTHERS = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
WITHOUT_REQUESTS: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": None}}}
SCHEDULER = "system:kube-scheduler"
USER = "someone"
PLUGIN = "system:serviceaccount:gpu-share:gpu-share-plugin"


def claim(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": list(requests)}}, **more}


def denied(by: Expressions, one: dict[str, Any], user: str, operation: str = "CREATE", **info: Any) -> list[str]:
    request = {"operation": operation, "userInfo": {"username": user, "extra": {}, **info}}
    return by.denials(one, one if operation != "CREATE" else None, request=request)


def test_the_classes_are_those_of_the_shipped_grid() -> None:
    assert device_classes.FILE.read_text() == device_classes.text(), "run make manifests"


def test_the_default_policy_of_the_overlay_is_the_shipped_one_by_dra() -> None:
    shipped = yaml.safe_load((ROOT / "policies" / "files" / "_default.yaml").read_text())
    own = yaml.safe_load((MANIFESTS / "overlays" / "dra" / "default" / "_default.yaml").read_text())
    assert own == {**shipped, "allocation": "dra"}


FIRST = {"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "share-1000m-whole.gpu-share.dev"}]}


@pytest.mark.parametrize("requests", [[OURS], [OTHERS, OURS], [FIRST]])
def test_a_claim_of_a_class_of_ours_is_made_by_the_scheduler_alone(requests: list[dict[str, Any]]) -> None:
    assert denied(CLAIMS, claim(*requests), SCHEDULER) == []
    for user in (USER, "system:serviceaccount:kube-system:resource-claim-controller", "system:admin"):
        (said,) = denied(CLAIMS, claim(*requests), user)
        assert "made by the scheduler alone" in said


def test_claims_of_other_classes_are_not_looked_at() -> None:
    unnamed: dict[str, Any] = {"metadata": {}, "spec": {}}
    assert not any(CLAIMS.matches(one) for one in (claim(OTHERS), claim(), unnamed))


def test_a_claim_without_requests_which_has_null_for_them_is_nobodys_business() -> None:
    empty = WITHOUT_REQUESTS
    assert not CLAIMS.matches(empty)
    assert not CLAIMS.matches(empty, empty | {"metadata": {"name": "c", "finalizers": ["a"]}})
    assert denied(TEMPLATES, {"metadata": {}, "spec": {"spec": empty["spec"]}}, USER) == []


def test_no_device_of_ours_is_allocated_to_a_claim_without_requests() -> None:
    after = allocated(("r", "gpu-share.dev"), requests=[])
    after["spec"] = WITHOUT_REQUESTS["spec"]
    (said,) = ALLOCATIONS.denials(after, WITHOUT_REQUESTS)
    assert "of a device class of gpu-share alone" in said


def test_a_claim_of_ours_is_changed_by_the_cluster_alone() -> None:
    for user in (SCHEDULER, "system:serviceaccount:kube-system:resource-claim-controller"):
        assert denied(CLAIMS, claim(OURS), user, "UPDATE") == []
    assert "by the scheduler and the controllers" in denied(CLAIMS, claim(OURS), USER, "UPDATE")[0]


def test_a_claim_of_ours_is_reserved_for_the_pod_that_owns_it_alone() -> None:
    owned = claim(OURS, status={"reservedFor": [{"uid": "p1"}]})
    owned["metadata"]["ownerReferences"] = [{"uid": "p1"}]
    assert denied(CLAIMS, owned, SCHEDULER, "UPDATE") == []
    owned["status"]["reservedFor"].append({"uid": "p2"})
    assert "no other pod can use its claim" in denied(CLAIMS, owned, SCHEDULER, "UPDATE")[0]


def allocated(*results: tuple[str, str], requests: list[dict[str, Any]]) -> dict[str, Any]:
    found = [{"request": request, "driver": driver, "pool": "n", "device": "d"} for request, driver in results]
    return claim(*requests, status={"allocation": {"devices": {"results": found}}})


@pytest.mark.parametrize(
    ("results", "requests", "is_denied"),
    [
        ([("r", "gpu-share.dev")], [OURS], False),
        ([("r/a", "gpu-share.dev")], [FIRST], False),
        ([("r", "gpu-share.dev")], [OTHERS], True),
        ([("r/b", "gpu-share.dev")], [FIRST], True),
        ([("r", "gpu-share.dev"), ("s", "gpu-share.dev")], [OURS, OTHERS | {"name": "s"}], True),
        ([("r", "gpu-share.dev"), ("s", "gpu.example.com")], [OURS, OTHERS | {"name": "s"}], False),
    ],
)
def test_a_device_of_ours_is_allocated_to_a_claim_of_a_class_of_ours_alone(
    results: list[tuple[str, str]], requests: list[dict[str, Any]], *, is_denied: bool
) -> None:
    after, before = allocated(*results, requests=requests), claim(*requests)
    request = {"operation": "UPDATE", "userInfo": {"username": SCHEDULER, "extra": {}}}
    said = ALLOCATIONS.denials(after, before, request=request)
    assert bool(said) is is_denied
    assert not said or "of a device class of gpu-share alone" in said[0]


def test_what_was_allocated_before_and_devices_of_others_are_not_looked_at() -> None:
    ours = allocated(("r", "gpu-share.dev"), requests=[OTHERS])
    others = allocated(("r", "gpu.example.com"), requests=[OTHERS])
    assert ALLOCATIONS.matches(ours, claim(OTHERS))
    assert not ALLOCATIONS.matches(ours, ours)
    assert not ALLOCATIONS.matches(others, claim(OTHERS))
    assert not ALLOCATIONS.matches(claim(OTHERS), ours)


@pytest.mark.parametrize(
    ("requests", "is_denied"), [([OURS], True), ([OTHERS, FIRST], True), ([OTHERS], False), ([], False)]
)
def test_a_template_names_no_class_of_ours(requests: list[dict[str, Any]], is_denied: bool) -> None:  # noqa: FBT001
    template = {"metadata": {}, "spec": {"spec": {"devices": {"requests": requests}}}}
    assert bool(denied(TEMPLATES, template, USER)) is is_denied
    assert denied(TEMPLATES, {"metadata": {}, "spec": {"spec": {}}}, USER) == []


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_plugin_writes_the_slices_of_its_own_node_alone(operation: str) -> None:
    on_n = {"authentication.kubernetes.io/node-name": ["n"]}
    own = {"metadata": {}, "spec": {"driver": "gpu-share.dev", "nodeName": "n", "pool": {"name": "n"}}}
    assert denied(SLICES, own, PLUGIN, operation, extra=on_n) == []
    for change in ({"nodeName": "m"}, {"driver": "example.com"}):
        assert denied(SLICES, {"metadata": {}, "spec": own["spec"] | change}, PLUGIN, operation, extra=on_n)
    assert denied(SLICES, {"metadata": {}, "spec": {"driver": "gpu-share.dev", "allNodes": True}}, PLUGIN, extra=on_n)
    assert denied(SLICES, own, PLUGIN, operation)  # a token that is not of a pod
    assert denied(SLICES, own, "kubelet", operation) == []


@pytest.mark.parametrize("user", ["system:node:m", PLUGIN, USER])
def test_nobody_writes_a_slice_of_ours_into_the_pool_of_another_node(user: str) -> None:
    on_m = {"authentication.kubernetes.io/node-name": ["m"]}
    forged: dict[str, Any] = {"driver": "gpu-share.dev", "nodeName": "m", "pool": {"name": "n"}}
    changes: list[dict[str, Any]] = [
        {},
        {"nodeName": None, "allNodes": True},
        {"nodeName": None, "nodeSelector": {}},
    ]
    for change in changes:
        spec = {name: value for name, value in (forged | change).items() if value is not None}
        for operation in ("CREATE", "UPDATE"):
            assert denied(SLICES, {"metadata": {}, "spec": spec}, user, operation, extra=on_m)
    others = {"metadata": {}, "spec": forged | {"driver": "gpu.example.com"}}
    assert bool(denied(SLICES, others, user, extra=on_m)) is (user == PLUGIN)
