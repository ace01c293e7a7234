"""`gpu-share explain` of pods that wait: whether the GPUs of a node have room for all that they ask for."""

import json
from typing import Any

import pytest

from policies.node_state import Gpu
from tests.console.explained import OURS, Asked, explain, known
from tests.console.objects import gpu, node, pending, state, tenant
from tests.console.stand_in import Object, StandIn

NOTHING = "nothing seen of its GPUs keeps the pod off"
USED = "still used by processes of a pod that was deleted by force"


def waits(*shares: int, of: int = 10, init: int = 0, **grant: Any) -> Object:
    """A pod that waits, with a container for each number of vGPUs, and one of *init* before them."""
    made = pending("late", "0.1", "0/1 nodes are available.")
    given = {f"c{index}": {"vgpus": count, "share": str(count / of), "of": of} for index, count in enumerate(shares)}
    if init:
        given["init"] = {"vgpus": init, "share": str(init / of), "of": of}
        made["spec"]["initContainers"] = [{"name": "init"}]
    made["spec"]["containers"] = [{"name": f"c{index}"} for index in range(len(shares))]
    before = json.loads(made["metadata"]["annotations"]["gpu-share.dev/grant"])
    made["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps({**before, "containers": given, **grant})
    return made


def by_dra(*millis: int) -> Object:
    given = {f"c{index}": {"resource": f"gpu-share.dev/share-{one}m"} for index, one in enumerate(millis)}
    made = waits(*millis, allocation="dra", resource="", containers=given)
    made["spec"]["containers"] = [{"name": name} for name in given]
    return made


def of_gpus(one: Object, *gpus: Gpu, allocatable: dict[str, str] | None = None) -> StandIn:
    on = known(one, state=state(*gpus))
    if allocatable:
        on.lists["/api/v1/nodes"] = [node("gpu-a", allocatable=allocatable)]
    on.lists[f"{OURS}/pods"] = [one]
    return on


@pytest.mark.parametrize(
    ("one", "free", "told"),
    [
        (waits(3, 3), (4, 1), "it has 5 gpu-share.dev/vgpu left in all, and the pod asks for 6"),
        (waits(3, 2), (4, 1), NOTHING),
        (waits(3, 2, init=4), (4, 1), NOTHING),  # one after the other
        (waits(3, 2, init=5), (4, 1), "no GPU has 0.5 free: GPU 0 has 0.4, GPU 1 has 0.1"),
        (by_dra(300, 300), (4, 1), "none of its GPUs is shared as"),
    ],
)
def test_all_containers_together_are_held_against_what_is_left(
    asked: Asked, one: Object, free: tuple[int, int], told: str
) -> None:
    gpus = (gpu(tenant(f"p{index}", 10 - left), index=index) for index, left in enumerate(free))
    assert f"    gpu-a: {told}" in explain(asked, of_gpus(one, *gpus), "late")


@pytest.mark.parametrize(
    ("free", "told"), [(500, "its GPUs have 0.5 left in all, and the pod asks for 0.6"), (600, NOTHING)]
)
def test_by_dra_they_are_added_up_in_thousandths(asked: Asked, free: int, told: str) -> None:
    one = gpu(parts=1000, allocation="dra", resource="", free=free, largest_free=free)
    assert f"    gpu-a: {told}" in explain(asked, of_gpus(by_dra(300, 300), one), "late")


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (by_dra(600), f"no GPU has 0.6 free: GPU 0 has 0.1, 0.8 {USED}, GPU 1 has 0.3"),
        (by_dra(300, 200), f"its GPUs have 0.4 left in all, and the pod asks for 0.5; GPU 0: 0.8 {USED}"),
    ],
)
def test_what_processes_of_a_deleted_pod_use_is_told_of(asked: Asked, asks: Object, told: str) -> None:
    old, beside = tenant("old", 800), tenant("beside", 100)
    gpus = (
        gpu(old, beside, parts=1000, allocation="dra", resource="", outlived=800),
        gpu(tenant("b", 700), index=1, parts=1000, allocation="dra", resource=""),
    )
    text = explain(asked, of_gpus(asks, *gpus), "late")
    assert f"    gpu-a: {told}\n" in text
    assert "unhealthy" not in text


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (waits(4), f"no GPU has 0.4 free: GPU 0 has 0.1, 0.8 {USED}, GPU 1 has 0.3"),
        (waits(3, 2), f"it has 4 gpu-share.dev/vgpu left in all, and the pod asks for 5; GPU 0: 0.8 {USED}"),
    ],
)
def test_what_they_use_of_vgpus_is_told_of_too(asked: Asked, asks: Object, told: str) -> None:
    gpus = gpu(tenant("old", 8), tenant("beside", 1), outlived=8), gpu(tenant("b", 7), index=1)
    assert f"    gpu-a: {told}\n" in explain(asked, of_gpus(asks, *gpus), "late")


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (waits(3), NOTHING),
        (waits(4), "no GPU has 0.571 free: GPU 0 has 0.428, 0.142 hidden"),
        (waits(2, 2), "it has 3 gpu-share.dev/vgpu left in all, and the pod asks for 4"),
    ],
)
def test_a_gpu_that_is_counted_in_thousandths_is_counted_in_vgpus_as_by_the_scheduler(
    asked: Asked, asks: Object, told: str
) -> None:
    one = gpu(tenant("a", 300), parts=1000, vgpus_per_gpu=7, hidden=142, free=429, largest_free=428)
    assert f"    gpu-a: {told}" in explain(asked, of_gpus(asks, one), "late")


def test_what_the_kubelet_does_not_know_of_is_not_left(asked: Asked) -> None:
    one = gpu(tenant("a", 2), advertised=10)
    for advertised, told in (("10", NOTHING), ("4", "it has 2 gpu-share.dev/vgpu left in all, and the pod asks for 3")):
        on = of_gpus(waits(3), one, allocatable={"gpu-share.dev/vgpu": advertised})
        assert f"    gpu-a: {told}" in explain(asked, on, "late")


@pytest.mark.parametrize("vgpus", ["-1", "9" * 20, "9" * 4300], ids=["negative", "long", "longer"])
def test_a_grant_of_a_number_that_no_webhook_grants_is_read_as_none(asked: Asked, vgpus: str) -> None:
    late = waits(1, 1)
    annotations = late["metadata"]["annotations"]
    annotations["gpu-share.dev/grant"] = annotations["gpu-share.dev/grant"].replace('"vgpus": 1', f'"vgpus": {vgpus}')
    assert "its grant cannot be read: gpu-share.dev/grant" in explain(asked, of_gpus(late, gpu(), gpu(index=1)), "late")


def test_a_pod_without_a_grant_is_not_said_to_fit(asked: Asked) -> None:
    one = pending("late", "0.1", "0/1 nodes are available.")
    del one["metadata"]["annotations"]["gpu-share.dev/grant"]
    one["spec"]["containers"][0]["resources"] = {"limits": {"gpu-share.dev/vgpu": "12"}}
    text = explain(asked, of_gpus(one, gpu(index=0)), "late")
    assert "    gpu-a: its GPUs are not compared with a pod without a grant" in text
    assert NOTHING not in text
