"""Which claims a node prepares: those that the scheduler made for one pod's shares, as it allocated them."""

from copy import deepcopy
from typing import Any

import pytest

from plugin.dra.claims import allocated_devices, wanted_devices
from plugin.dra.devices import Device, devices_of
from plugin.errors import ClaimError
from tests.plugin.dra.gpus import divided, shared

DEVICES = {one.name: one for one in devices_of(shared(1), division=divided(10), kept={})}
NAME = "gpu-00000000-200m-0"
CLAIM: dict[str, Any] = {
    "metadata": {
        "name": "p-extended-resources-abcde",
        "uid": "u-1",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"uid": "pod-1", "name": "p", "kind": "Pod", "controller": True}],
    },
    "spec": {
        "devices": {
            "requests": [{"name": "container-0-request-0", "exactly": {"deviceClassName": "share-200m.gpu-share.dev"}}]
        }
    },
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "container-0-request-0", "driver": "gpu-share.dev", "pool": "n", "device": NAME},
                    {"request": "nic", "driver": "example.com", "pool": "n", "device": "x"},
                ]
            }
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "pod-1"}],
    },
}


def wanted(claim: Any, devices: dict[str, Device] = DEVICES) -> list[tuple[str, str]]:
    _, allocated = allocated_devices(claim, uid="u-1", node="n")
    found = wanted_devices(allocated, devices)
    return [(one.request, one.device.name) for one in found]


def changed(path: str, value: Any) -> dict[str, Any]:
    claim: Any = deepcopy(CLAIM)
    *above, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    holder = claim
    for step in above:
        holder = holder[step]
    holder[last] = value
    made: dict[str, Any] = claim
    return made


def test_the_results_of_other_drivers_are_theirs() -> None:
    assert wanted(CLAIM) == [("container-0-request-0", NAME)]


def test_a_request_of_alternatives_is_known_by_its_first_half() -> None:
    claim = changed("status.allocation.devices.results.0.request", "container-0-request-0/first")
    assert wanted(claim) == [("container-0-request-0", NAME)]


RESULTS = "status.allocation.devices.results"


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (changed("metadata.uid", "u-2"), "deleted and made anew"),
        (changed("status", {}), "no device of gpu-share.dev"),
        (changed("status.allocation", None), "no device of gpu-share.dev"),
        (changed(f"{RESULTS}.0.driver", "example.com"), "no device of gpu-share.dev"),
        (changed("metadata.annotations", {}), "made by the scheduler alone"),
        (changed("metadata.annotations", None), "made by the scheduler alone"),
        (changed("status.reservedFor", [{"uid": "pod-1"}, {"uid": "pod-2"}]), "another pod's"),
        (changed("metadata.ownerReferences", None), "another pod's"),
        (changed(f"{RESULTS}.0.pool", "m"), "of the node m"),
        (changed(f"{RESULTS}.0.adminAccess", True), "adminAccess"),  # noqa: FBT003 - a field's value
        (changed(f"{RESULTS}.0.device", "gone"), "gone from this node"),
        (changed(RESULTS, [CLAIM["status"]["allocation"]["devices"]["results"][0]] * 2), "has several"),
        (changed("spec.devices.requests.0.exactly.deviceClassName", "any.example.com"), "asks for the class"),
        (changed("spec.devices.requests", []), "asks for the class ''"),
        (changed("status", "x"), "cannot be read"),
        ([], "cannot be read"),
    ],
)
def test_any_other_claim_is_denied_with_the_reason(claim: Any, words: str) -> None:
    with pytest.raises(ClaimError, match=words):
        wanted(claim)
