"""The kubelet gives a vGPU to a new container that another one has: no share is passed by it."""

from pathlib import Path

import pytest

from plugin.simulated.device_manager import UnexpectedAdmissionError
from tests.plugin.device_plugin.slow_node import SlowNode


@pytest.fixture
def node(tmp_path: Path) -> SlowNode:
    return SlowNode(tmp_path)


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


def test_where_the_kubelet_has_nothing_else_left_the_new_one_is_denied_with_what_to_do(
    node: SlowNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, count in enumerate((4, 10, 6)):
        node.admit(f"pod-{number}", count)
    node.after(10)
    forget(node, "default/pod-0", monkeypatch)
    with pytest.raises(UnexpectedAdmissionError, match=r"default/pod-0/main that has it: .* create the pod anew"):
        node.admit("new", 2)
    assert sorted(node.after(10).values()) == [0, 0]
    node.end("default/pod-0")
    assert sorted(node.after(10).values()) == [0, 4]


@pytest.mark.parametrize("restarts", [True, False])
def test_what_containers_have_is_held_until_they_end_although_the_kubelet_has_lost_its_checkpoint(
    node: SlowNode, *, restarts: bool
) -> None:
    (first,) = node.admit("first", 6)
    before = node.after(10)
    node.lose_checkpoint()
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
