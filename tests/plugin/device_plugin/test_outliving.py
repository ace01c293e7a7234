"""What processes still use of a pod that was deleted by force goes to nobody, and is free once they have ended."""

from pathlib import Path

import pytest

from plugin.device_plugin.holder import Holder
from plugin.device_plugin.outliving import tenants_left
from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.simulated.device_manager import PluginCallError, UnexpectedAdmissionError
from tests.plugin.device_plugin.forced_node import ForcedNode
from tests.plugin.device_plugin.walk import ServiceAsPlugin


@pytest.fixture
def node(tmp_path: Path) -> ForcedNode:
    return ForcedNode(tmp_path)


def test_the_kubelet_hears_that_it_is_unhealthy_until_its_processes_have_ended(node: ForcedNode) -> None:
    node.admit("a", 9)
    assert node.free() == [1, 10]
    node.delete_by_force("default/a")
    assert node.free() == [1, 10]
    assert node.healthy() == 11
    node.end_processes("default/a")
    assert node.free() == [10, 10]
    assert node.healthy() == 20


@pytest.mark.parametrize("seconds", [0, 1, 5])  # before a list of the kubelet's says it, and after
def test_the_next_pod_gets_another_gpu(node: ForcedNode, seconds: int) -> None:
    (first,) = node.admit("a", 9)
    node.after(5)
    node.delete_by_force("default/a")
    node.after(seconds)
    (second,) = node.admit("b", 9)
    assert second.environment["NVIDIA_VISIBLE_DEVICES"] != first.environment["NVIDIA_VISIBLE_DEVICES"]
    assert node.free() == [1, 1]
    node.check()


def test_a_pod_that_is_deleted_as_soon_as_it_is_there_is_known_too(node: ForcedNode) -> None:
    (first,) = node.admit("a", 9)
    node.delete_by_force("default/a")
    (second,) = node.admit("b", 9)
    assert second.environment["NVIDIA_VISIBLE_DEVICES"] != first.environment["NVIDIA_VISIBLE_DEVICES"]


def test_who_fits_nowhere_else_is_denied_with_the_reason_and_gets_it_later(node: ForcedNode) -> None:
    for name in ("a", "b"):
        node.admit(name, 10)
    node.after(5)
    node.delete_by_force("default/a")
    with pytest.raises(
        UnexpectedAdmissionError, match=r"processes of default/a/main still use it, whose pod was deleted"
    ):
        node.admit("c", 10)
    with pytest.raises(UnexpectedAdmissionError):  # by the kubelet itself, which has heard of it
        node.admit("d", 1)
    node.end_processes("default/a")
    node.after(2)
    node.admit("c", 10)
    node.check()


def test_what_the_kubelet_gives_without_a_question_is_denied(node: ForcedNode) -> None:
    (first,) = node.admit("a", 4)
    node.after(2)
    node.delete_by_force("default/a")
    with pytest.raises(PluginCallError, match="processes of default/a/main still use it"):
        ServiceAsPlugin(node._service).allocate(first.device_ids)


@pytest.mark.parametrize("restarted", ["plugin", "kubelet", "both"])
def test_neither_a_plugin_nor_a_kubelet_that_starts_gives_it_away(node: ForcedNode, restarted: str) -> None:
    node.admit("a", 9)
    node.admit("other", 5)
    node.after(2)
    node.delete_by_force("default/a")
    node.after(2)
    if restarted != "plugin":
        node.restart_kubelet(known=1 << 20)
    if restarted != "kubelet":
        node.start_plugin()
    for seconds in (1, 30, 300):
        assert sorted(node.after(seconds).values()) == [1, 5]
    node.end_processes("default/a")
    assert sorted(node.after(150).values()) == [5, 10]


def test_a_kubelet_that_does_not_list_who_has_what_gives_nothing_away_that_is_used(node: ForcedNode) -> None:
    for name in ("a", "b"):
        node.admit(name, 9)
    node.after(5)
    node.delete_by_force("default/a")
    node.is_silent = True
    with pytest.raises(UnexpectedAdmissionError, match=r"processes of default/a/main still use it"):
        node.admit("c", 9)
    node.end_processes("default/a")
    node.is_silent = False
    node.after(2)
    node.admit("c", 9)
    node.check()


@pytest.mark.parametrize("restarted", [False, True])
def test_neither_is_what_it_has_given_away_since_it_lists_nothing(node: ForcedNode, *, restarted: bool) -> None:
    node.admit("b", 9)
    node.after(5)
    node.is_silent = True
    node.admit("a", 9)
    for _ in range(3):
        with pytest.raises(TenantsError):
            node.look()
    if restarted:
        node.start_plugin()
    node.delete_by_force("default/a")
    node.write()
    for _ in range(3):
        with pytest.raises(TenantsError):
            node.look()
    with pytest.raises(UnexpectedAdmissionError, match=r"still use|Available: "):
        node.admit("c", 9)


def test_what_has_ended_is_free_although_the_kubelet_does_not_list_who_has_what(node: ForcedNode) -> None:
    node.admit("a", 9)
    node.after(5)
    node.delete_by_force("default/a")
    node.after(2)
    node.is_silent = True
    node.end_processes("default/a")
    with pytest.raises(TenantsError):
        node.look()
    node.tell()
    assert node.healthy() == 20


def test_a_plugin_that_starts_tells_the_kubelet_at_once_what_is_still_used(node: ForcedNode) -> None:
    node.admit("a", 9)
    node.admit("other", 5)
    node.after(2)
    node.delete_by_force("default/a")
    node.after(2)
    assert node.healthy() == 11
    node.start_plugin()
    for _ in range(40):
        assert node.healthy() == 11
        node.after(1)


def test_of_two_pods_of_one_name_the_one_that_the_kubelet_lists_is_named() -> None:
    vgpu = VGpuId("GPU-a", 0)
    held = {str(vgpu): Holder(container="ns/web-0/main", since_seconds=0, outlives=True)}
    next_one = Tenant(namespace="ns", pod="web-0", container="main", vgpus=(VGpuId("GPU-a", 1),))
    other = Tenant(namespace="ns", pod="web-1", container="main", vgpus=(VGpuId("GPU-a", 1),))
    assert not [*tenants_left(held, [next_one])]
    assert [(one.name, one.vgpus) for one in tenants_left(held, [other])] == [("ns/web-0/main", (vgpu,))]


def test_whoever_asks_who_is_there_is_told_of_it(node: ForcedNode) -> None:
    node.admit("a", 3)
    node.after(2)
    before = node.tenants()
    node.delete_by_force("default/a")
    node.after(2)
    assert node.tenants() == before
    node.end_processes("default/a")
    node.after(2)
    assert node.tenants() == []


def test_what_a_pod_had_that_a_kubelet_has_admitted_anew_is_free(node: ForcedNode) -> None:
    node.admit("a", 4)
    node.after(5)
    node.lose_checkpoint()
    node.after(5)
    node.admit("a", 4)
    node.without.clear()
    assert sorted(node.after(100).values()) == [6, 10]


def test_a_pod_that_has_ended_as_it_should_is_free_at_once(node: ForcedNode) -> None:
    node.admit("a", 9)
    node.after(2)
    node.end("default/a")
    assert node.free() == [10, 10]


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_deleted_by_force_no_gpu_is_given_away_beyond_its_whole(tmp_path: Path, seed: int) -> None:
    node = ForcedNode(tmp_path, seed=seed)
    for _ in range(300):
        node.random_step()
    assert node.steps["force"] > 10
    assert node.steps["over"] > 5
    assert node.steps["allocated"] > 20
    for name in [*node.left]:
        node.end_processes(name)
    for name in [*node._running]:
        node.end(name)
    node.known = 1 << 20
    node._faults.clear()
    node.after(200)
    node.settle()
    node.after(2)
    assert list(node.after(0).values()) == [node.number, node.number]
