"""The kubelet gives a vGPU to a new container that another one has: no share is passed by it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plugin.pod_resources.tenants import Tenant
from plugin.simulated.device_manager import PluginCallError, UnexpectedAdmissionError
from tests.plugin.device_plugin.slow_node import SlowNode
from tests.plugin.device_plugin.walk import ServiceAsPlugin


@pytest.fixture
def node(tmp_path: Path) -> SlowNode:
    return SlowNode(tmp_path)


def listed_without(pod: str) -> Tenant:
    return Tenant(namespace="default", pod=pod, container="main", vgpus=())


def forget(node: SlowNode, pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the kubelet count as free what it lists a pod with, as in kubernetes#137534."""
    holders = node._manager.holders
    monkeypatch.setattr(
        node._manager, "holders", lambda name: {text: one for text, one in holders(name).items() if one[0] != pod}
    )


@pytest.mark.parametrize("seconds", [0, 10])
def test_what_a_container_has_that_the_kubelet_lists_goes_to_no_other(
    node: SlowNode, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    (first,) = node.admit("first", 4)
    (one,) = [gpu for gpu in node.gpus if gpu.uuid == first.environment["NVIDIA_VISIBLE_DEVICES"]]
    node.after(seconds)
    forget(node, "default/first", monkeypatch)
    (second,) = node.admit("second", 8)
    assert second.environment["NVIDIA_VISIBLE_DEVICES"] != one.uuid
    assert sorted(node.after(10).values()) == [2, 6]
    node.check()


def test_what_an_init_container_has_beside_one_that_the_kubelet_lists_goes_to_no_other(
    node: SlowNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    (init, _) = node.admit("first", 2, init=8)
    node.after(10)
    forget(node, "default/first", monkeypatch)
    for number in range(2):
        (given,) = node.admit(f"pod-{number}", 4)
        assert given.environment["NVIDIA_VISIBLE_DEVICES"] != init.environment["NVIDIA_VISIBLE_DEVICES"]
    node.check()


def test_where_the_kubelet_has_nothing_else_left_the_new_one_is_denied_with_what_to_do(
    node: SlowNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, count in enumerate((4, 10, 6)):
        node.admit(f"pod-{number}", count)
    node.after(10)
    forget(node, "default/pod-0", monkeypatch)
    with pytest.raises(
        UnexpectedAdmissionError, match=r"default/pod-0/main has it: the kubelet has lost count, so create the pod anew"
    ):
        node.admit("new", 2)
    assert sorted(node.after(10).values()) == [0, 0]
    node.end("default/pod-0")
    assert sorted(node.after(10).values()) == [0, 4]


def test_what_the_kubelet_gives_without_a_question_is_denied_if_it_lists_it_with_another(node: SlowNode) -> None:
    (first,) = node.admit("first", 4)
    for seconds in (0, 1):  # before a list has named it, and after
        node.after(seconds)
        with pytest.raises(PluginCallError, match="default/first/main has it"):
            ServiceAsPlugin(node._service).allocate(first.device_ids)


@pytest.mark.parametrize("restarts", [True, False])
def test_what_containers_have_is_held_until_they_end_although_the_kubelet_has_lost_its_checkpoint(
    node: SlowNode, *, restarts: bool
) -> None:
    (first,) = node.admit("first", 6)
    before = node.after(10)
    node.lose_checkpoint()
    node.after(1)
    if restarts:
        node.start_plugin()
    for seconds in (1, 40, 300):
        assert node.after(seconds) == before
    (second,) = node.admit("second", 8)
    assert second.environment["NVIDIA_VISIBLE_DEVICES"] != first.environment["NVIDIA_VISIBLE_DEVICES"]
    with pytest.raises(UnexpectedAdmissionError):
        node.admit("third", 6)
    node.without.clear()
    del node._running["default/first"]
    assert sorted(node.after(100).values()) == [2, 10]


def test_a_container_that_gets_others_after_that_has_those_alone(node: SlowNode) -> None:
    node.admit("first", 4)
    node.after(10)
    node.lose_checkpoint()
    node.after(10)
    node.admit("first", 4)  # it has ended, and starts again
    node.without.clear()
    assert sorted(node.after(100).values()) == [6, 10]


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_where_another_container_has_all_that_the_kubelet_offers_the_new_one_is_denied(
    tmp_path: Path, seed: int, *, restarts: bool
) -> None:
    node = SlowNode(tmp_path, seed=seed)
    for number in range(2):
        node.admit(f"pod-{number}", 10)
    node.after(10)
    node.lose_checkpoint()
    node.after(60)
    if restarts:
        node.start_plugin()
        node.after(60)
    for count in (1, 10):
        with pytest.raises(UnexpectedAdmissionError, match="the kubelet has lost count"):
            node.admit("new", count)
    assert sorted(node.after(100).values()) == [0, 0]


@pytest.mark.parametrize("is_silent", [True, False])
def test_until_such_a_kubelet_has_had_time_to_list_its_containers_they_have_what_they_had(
    node: SlowNode, *, is_silent: bool
) -> None:
    node.admit("first", 6)
    node.after(10)
    node.lose_checkpoint()
    listed, node.without, node.is_silent = node.without, [], is_silent
    node.admit("second", 10)
    with pytest.raises(UnexpectedAdmissionError):
        node.admit("third", 6)
    node.is_silent = False
    for number in range(4):
        node.without.append(listed_without(f"other-{number}"))
        node.after(25)
    node.without += listed
    assert sorted(node.after(200).values()) == [0, 4]


@pytest.mark.parametrize("fsync_seconds", [0, 30])
def test_a_pod_that_a_killed_kubelet_admits_again_is_admitted_although_that_lists_it_without_any_yet(
    node: SlowNode, fsync_seconds: int
) -> None:
    node.fsync_seconds = fsync_seconds
    node.admit("web-0", 8)
    node.admit("web-1", 8)
    node.after(5 if fsync_seconds else 0)
    node.without = [listed_without("web-0"), listed_without("web-1")]
    node.kill_kubelet()
    assert node.steps["admitted again"] == 2
    node.check()


@pytest.mark.parametrize("restart", [SlowNode.start_plugin, lambda node: node.restart_kubelet(known=100)])
def test_a_pod_that_comes_again_under_its_name_is_admitted(node: SlowNode, restart: Callable[[SlowNode], None]) -> None:
    node.admit("web-0", 8)
    node.admit("web-1", 8)
    node.after(10)
    restart(node)
    node.after(60)
    node.end("default/web-0")
    node.without = [listed_without("web-0")]  # it is being admitted
    node.admit("web-0", 8)
    node.check()


@pytest.mark.parametrize("restart", [SlowNode.start_plugin, lambda node: node.restart_kubelet(known=100)])
def test_pods_that_have_ended_which_kubelets_before_1_34_list_too_have_nothing(
    node: SlowNode, restart: Callable[[SlowNode], None]
) -> None:
    node.admit("server", 1)
    node.admit("job", 6)
    node.after(10)
    node.end("default/job")
    node.without = [listed_without("job")]
    restart(node)
    assert sorted(node.after(150).values()) == [9, 10]


def test_what_ended_while_no_plugin_ran_and_the_kubelet_started_anew_is_not_taken_for_lost(node: SlowNode) -> None:
    node.admit("job", 10)
    node.after(10)
    node.end("default/job")
    node.without = [listed_without("job")]
    node.write()
    node.restart_kubelet(known=100)  # it writes its checkpoint without the job
    node.start_plugin()
    assert sorted(node.after(100).values()) == [10, 10]


def test_a_container_that_comes_again_and_again_does_not_make_the_list_of_such_a_kubelet_longer(node: SlowNode) -> None:
    node.admit("first", 6)
    node.after(10)
    node.lose_checkpoint()
    del node._running["default/first"]
    for number in range(8):
        node.without = [listed_without("again")] if number % 2 else []
        node.after(10)
    assert sorted(node.devices.room().values()) == [10, 10], "which the kubelet does not list has ended"


def test_what_ended_around_the_first_of_two_restarts_of_the_kubelet_is_not_taken_for_lost(node: SlowNode) -> None:
    node.admit("job", 10)
    node.after(10)
    node.restart_kubelet(known=0)
    node.after(2)
    node.end("default/job")
    node.without = [listed_without("job")]
    node.write()
    node.after(2)  # the kubelet that has not named it writes its checkpoint without it
    node.restart_kubelet(known=100)
    assert sorted(node.after(100).values()) == [10, 10]


def test_a_checkpoint_that_is_lost_before_a_kubelet_has_listed_anybody_is_seen_to_be_lost(node: SlowNode) -> None:
    node.admit("first", 6)
    before = node.after(10)
    node.is_silent = True  # an ordinary restart, and then one without the checkpoint
    node.restart_kubelet(known=100)
    node._held.notice_kubelet()
    node.is_silent = False
    node.lose_checkpoint()
    assert node.after(200) == before
