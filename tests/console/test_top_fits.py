"""Which share `gpu-share top` says that still fits: one that a pod can get now, of each kind of GPU."""

from collections.abc import Callable

import pytest
from click.testing import Result

from policies.node_state import Ages, Gpu, NodeState, NotRegistered
from tests.console.objects import cluster, gpu, node, state, tenant

UNREGISTERED = (NotRegistered(resource="gpu-share.dev/vgpu", why="the kubelet said no"),)
FULL = (gpu(tenant("a", 10)),)


def head(asked: Callable[..., Result], *said: NodeState, **allocatable: str) -> str:
    on = cluster(*said)
    resources = {f"gpu-share.dev/{name.replace('_', '-')}": number for name, number in allocatable.items()}
    if resources:
        on.lists["/api/v1/nodes"] = [node(one.node, allocatable=resources) for one in said]
    return asked(on, "top", "--once").stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (state(gpu(tenant("a", 3))), "1 GPU, largest share that fits: 0.7  "),
        (state(gpu(), ages=Ages(health=3600.0)), "1 GPU  "),
        (state(gpu(), not_registered=UNREGISTERED), "1 GPU, largest share that fits: 0  "),
    ],
)
def test_what_no_pod_can_get_does_not_fit(asked: Callable[..., Result], said: NodeState, told: str) -> None:
    assert told in head(asked, said)


def test_what_a_node_does_not_advertise_does_not_fit(asked: Callable[..., Result]) -> None:
    assert "largest share that fits: 0  " in head(asked, state(gpu()), cpu="8")


@pytest.mark.parametrize("resource", ["", "gpu-share.dev/vgpu"])
def test_what_is_not_published_for_dra_does_not_fit(asked: Callable[..., Result], resource: str) -> None:
    of_each = gpu(resource=resource, allocation="dra", device="gpu")
    said = head(asked, state(of_each, slices_not_published="forbidden"))
    assert f"largest share that fits: {'1' if resource else '0'}  " in said


def test_beside_a_silent_node_more_may_fit(asked: Callable[..., Result]) -> None:
    old = state(gpu(), on="gpu-b", ages=Ages(health=3600.0))
    assert "largest share that fits: at least 0.7  " in head(asked, state(gpu(tenant("a", 3))), old)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ((), "largest share that fits: 0  "),
        (
            (gpu(index=1, parts=1, strategy="whole", resource="gpu-share.dev/gpu"),),
            "largest share that fits: 0 (vgpu), 1 (gpu)  ",
        ),
        (
            (gpu(tenant("b", 9), index=1, uuid="MIG-1", resource="gpu-share.dev/vgpu-mig-1g.10gb"),),
            "largest share that fits: 0 (vgpu), 0.1 (vgpu-mig-1g.10gb)  ",
        ),
    ],
)
def test_each_kind_of_gpu_has_its_own_share_that_fits(
    asked: Callable[..., Result], others: tuple[Gpu, ...], told: str
) -> None:
    said = state(*FULL, *others)
    assert told in head(asked, said, vgpu="10", gpu="1", **{"vgpu-mig-1g.10gb": "10"})


HALF = (gpu(tenant("a", 5)),)


@pytest.mark.parametrize(
    ("listed", "said", "told"),
    [
        ((), (state(*HALF),), "at most 0.5  "),
        ((), (state(*FULL),), "0  "),
        (("gpu-a",), (state(*HALF), state(gpu(), on="gpu-b")), "at most 1  "),
        (("gpu-a",), (state(*HALF), state(*FULL, on="gpu-b")), "0.5  "),
        (
            ("gpu-a",),
            (state(*HALF), state(gpu(), on="gpu-b"), state(gpu(), on="gpu-c", ages=Ages(health=3600.0))),
            "at least 0.5  ",
        ),
    ],
)
def test_of_a_node_that_nobody_may_read_what_is_free_is_the_most_that_may_fit(
    asked: Callable[..., Result], listed: tuple[str, ...], said: tuple[NodeState, ...], told: str
) -> None:
    on = cluster(*said)
    on.lists["/api/v1/nodes"] = [node(name) for name in listed]
    on.forbidden = set() if listed else {"nodes"}
    text = asked(on, "top", "--once").stdout
    assert f"largest share that fits: {told}" in text.splitlines()[0], text
    assert ("the right to list nodes is missing" in text) is (not listed)
