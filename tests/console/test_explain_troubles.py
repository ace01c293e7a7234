"""`gpu-share explain` of pods that wait, fail or crash: what is wrong, and what to do."""

import json
from typing import Any

import pytest

from console.explain.remedies import REMEDIES, remedies
from policies.node_state import Ages, NotRegistered
from tests.console.explained import OURS, Asked, explain, known
from tests.console.objects import ago, gpu, pending, pod, state, tenant
from tests.console.stand_in import Object, StandIn, status_of
from tests.docs.pages import ROOT, anchors

DRA = "/apis/resource.k8s.io/v1"
SIZE = "gpu-share.dev/share-400m"


def by_dra(*, claim: str = "", size: str = SIZE) -> Object:
    """A pod that waits for a share by DRA, and of which the scheduler may have made a claim."""
    grant = {
        "policy": "team-vision",
        "strategy": "mps",
        "allocation": "dra",
        "containers": {"main": {"resource": size, "share": "0.4"}},
    }
    made = pending("late", "0.4", f"0/1 nodes are available: 1 Insufficient {size}.")
    made["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant)
    if claim:
        made["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": claim}
    return made


def event(reason: str, message: str) -> Object:
    """A warning about a pod."""
    return {
        "metadata": {"name": "p.1"},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": ago(minutes=1),
    }


def ended(exit_code: int, reason: str, message: str) -> list[Object]:
    """The status of a container that ended so, and is about to be started again."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    last = {"terminated": {"exitCode": exit_code, "reason": reason, "message": message}}
    return [{"name": "main", "state": waiting, "lastState": last}]


def with_classes(on: StandIn, *resources: str) -> StandIn:
    on.lists[f"{DRA}/deviceclasses"] = [
        {"metadata": {"name": "c"}, "spec": {"extendedResourceName": one}} for one in resources
    ]
    return on


def test_a_size_that_no_device_class_is_for_is_told(asked: Asked) -> None:
    assert f"    no DeviceClass is for {SIZE}: apply what" in explain(asked, with_classes(known(by_dra())), "late")
    assert "no DeviceClass" not in explain(asked, with_classes(known(by_dra()), SIZE), "late")


def test_a_pod_that_waits_for_what_its_policy_grants_no_more_is_told_to_be_deleted(asked: Asked) -> None:
    text = explain(asked, known(by_dra()), "late")
    assert "what to do: it was granted a share under mps by dra, and its policy says mps by now: delete the pod" in text
    assert "wait, ask for less" not in text
    same = explain(asked, known(pending("late", "0.4", "0/1 nodes are available: 1 Insufficient x.")), "late")
    assert "what to do: wait, ask for less, or add a node" in same


@pytest.mark.parametrize(
    ("device", "told"),
    [
        ("gpu", "gpu-a: none of its GPUs is shared as t4 by dra"),
        ("t4", "gpu-a: no GPU has 0.5 free: GPU 0 has 0.45"),
        ("", "gpu-a: no GPU has 0.5 free: GPU 0 has 0.45"),  # a part that does not say
    ],
)
def test_a_size_of_a_device_is_looked_for_on_gpus_of_that_device(asked: Asked, device: str, told: str) -> None:
    size = "gpu-share.dev/share-500m-model-t4"
    one = gpu(parts=1000, allocation="dra", resource="", device=device, largest_free=450)
    assert f"    {told}" in explain(asked, with_classes(known(by_dra(size=size), state=state(one)), size), "late")


@pytest.mark.parametrize(("status", "told"), [({}, True), ({"allocation": {"devices": {}}}, False)])
def test_a_claim_without_a_device_is_told(
    asked: Asked,
    status: Object,
    told: bool,  # noqa: FBT001 - of a table
) -> None:
    on = with_classes(known(by_dra(claim="late-x")), SIZE)
    claim = {"metadata": {"name": "late-x"}, "status": status}
    on.raw[f"{DRA}/namespaces/team-vision/resourceclaims/late-x"] = (200, json.dumps(claim).encode())
    assert ("    resource claim late-x has no device yet" in explain(asked, on, "late")) is told


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("deviceclasses", "list deviceclasses"),
        ("namespaces/team-vision/resourceclaims/late-x", "get resourceclaims in namespace team-vision"),
    ],
)
def test_what_may_not_be_read_of_dra_is_named_with_the_right(asked: Asked, path: str, right: str) -> None:
    on = known(by_dra(claim="late-x"))
    on.raw[f"{DRA}/{path}"] = status_of(403, 'it is forbidden: User "viewer" cannot read it')
    text = explain(asked, on, "late")
    assert f"the right to {right} is missing" in text
    assert "no DeviceClass" not in text or path != "deviceclasses"


def test_a_pod_that_waits_is_told_what_quotas_leave(asked: Asked) -> None:
    on = known(pending("late", "0.4", "no"))
    status = {"hard": {"requests.gpu-share.dev/vgpu": "20"}, "used": {"requests.gpu-share.dev/vgpu": "6"}}
    on.lists[f"{OURS}/resourcequotas"] = [{"metadata": {"name": "gpus"}, "status": status}]
    assert "    quota gpus: 6 of 20 requests.gpu-share.dev/vgpu\n" in explain(asked, on, "late")


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            {"phase": "Failed", "reason": "TopologyAffinityError", "message": "Resources cannot be allocated"},
            "the kubelet found no CPUs and GPU next to each other",
        ),
        (
            {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "something new"},
            "the kubelet rejected it: create the pod again (docs/troubleshooting.md#unexpectedadmissionerror)",
        ),
        (
            {"phase": "Failed", "reason": "OutOfgpu-share.dev/vgpu", "message": "Node didn't have enough resource: x"},
            "another pod was faster",
        ),
        (
            {"containerStatuses": ended(1, "Error", "torch.OutOfMemoryError: CUDA out of memory. Tried")},
            "the memory of its share is used up: ask for a larger share",
        ),
        ({"containerStatuses": ended(137, "OOMKilled", "")}, "the node's memory, not the GPU's"),
    ],
)
def test_a_pod_that_failed_or_crashes_is_told_what_to_do(asked: Asked, status: dict[str, Any], told: str) -> None:
    assert f"what to do: {told}" in explain(asked, known(pod("p", **status)), "p")


def test_how_a_container_ended_that_is_started_again_is_told(asked: Asked) -> None:
    text = explain(asked, known(pod("p", containerStatuses=ended(1, "Error", "CUDA out of memory"))), "p")
    assert '    container "main" ended with exit code 1: Error: CUDA out of memory' in text


def test_what_an_event_says_of_a_pod_that_does_not_start_is_told_with_what_to_do(asked: Asked) -> None:
    on = known(pod("p", phase="Pending"))
    on.lists[f"{OURS}/events"] = [
        event("FailedScheduling", "1 Insufficient gpu-share.dev/vgpu"),
        event("FailedMount", 'MountVolume.SetUp failed for volume "nvidia-mps" : hostPath type check failed'),
    ]
    text = explain(asked, on, "p")
    assert "what to do: the node has no directory of MPS pipes" in text
    assert "what to do: wait, ask for less" not in text, "it is scheduled by now"


def test_each_reason_of_the_scheduler_has_its_remedy_once_and_what_control_planes_say_comes_last() -> None:
    why = "0/3 nodes are available: 1 Insufficient x, 1 Insufficient y, 1 node(s) had untolerated taint {a: b}."
    assert [one.says for one in remedies([why, why])] == ["Insufficient", "untolerated taint"]


def test_every_remedy_leads_to_a_section_of_the_documents() -> None:
    for one in REMEDIES:
        page, _, anchor = one.page.partition("#")
        assert anchor in anchors((ROOT / "docs" / page).read_text()), one.page


def test_a_node_whose_gpus_the_scheduler_does_not_see_is_told_of_a_pod_by_dra(asked: Asked) -> None:
    hidden = state(gpu(allocation="dra", resource="", device="gpu"), slices_not_published="forbidden")
    said = "it does not publish its GPUs for the scheduler: forbidden"
    assert said in explain(asked, known(by_dra(), state=hidden), "late")
    assert said not in explain(asked, known(pending("late", "0.2", "no"), state=hidden), "late")


def test_a_node_whose_kubelet_does_not_know_what_a_pod_asks_for_is_told_of(asked: Asked) -> None:
    unknown = NotRegistered(resource="gpu-share.dev/vgpu", why="it cannot dial")
    cut_off = state(gpu(), not_registered=(unknown,))
    said = "its kubelet does not know gpu-share.dev/vgpu: it cannot dial"
    assert said in explain(asked, known(pending("late", "0.2", "no"), state=cut_off), "late")
    assert said not in explain(asked, known(by_dra(), state=cut_off), "late")


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ("silent for 3600 s: what follows is what it said last", {"ages": Ages(health=3600.0)}),
        ("tenants unknown: the kubelet is away", {"tenants_unknown": "the kubelet is away"}),
    ],
)
def test_what_a_node_said_is_not_told_as_what_holds_now(asked: Asked, told: str, changes: dict[str, Any]) -> None:
    before = state(gpu(tenant("resnet-0", 2)), **changes)
    runs = explain(asked, known(pod("resnet-0"), state=before), "resnet-0")
    assert told in runs
    assert runs.index(told) < runs.index("with nobody else"), runs
    assert told in explain(asked, known(pending("late", "0.2", "no"), state=before), "late")
