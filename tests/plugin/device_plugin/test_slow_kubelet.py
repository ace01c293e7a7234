"""What containers hold stays held although the kubelet's disk is slow, or it takes long over its pods at its start."""

from pathlib import Path

import pytest

from plugin.shares.parts_file import parts, write_parts
from tests.plugin.device_plugin import kubelet_file
from tests.plugin.device_plugin.slow_node import SlowNode

pytestmark = pytest.mark.exhaustive


@pytest.fixture
def node(tmp_path: Path) -> SlowNode:
    return SlowNode(tmp_path)


@pytest.mark.parametrize("fsync_seconds", [5, 35, 120])
def test_what_a_running_init_container_has_is_held_however_late_the_file_of_before_gets_to_the_disk(
    node: SlowNode, fsync_seconds: int
) -> None:
    node.fsync_seconds = fsync_seconds
    node.write()  # the kubelet has been sent devices
    first, _ = node.admit("one", 2, init=8)
    gpu = first.environment["NVIDIA_VISIBLE_DEVICES"]
    for _ in range(6):
        assert node.after(fsync_seconds)[gpu] == 2
    (second,) = node.admit("two", 8)
    assert second.environment["NVIDIA_VISIBLE_DEVICES"] != gpu


@pytest.mark.parametrize("seconds", [20, 40, 600])
def test_what_a_kubelet_that_has_started_is_yet_to_name_is_held_for_as_long_as_it_has_it(
    node: SlowNode, seconds: int
) -> None:
    for number, count in enumerate([2, 3, 4]):
        node.admit(f"pod-{number}", count)
    before = node.after(2)
    assert sorted(before.values()) == [1, 10]
    node.restart_kubelet(known=1)
    assert node.after(seconds) == before
    node.start_plugin()
    assert node.after(seconds) == before
    node.known = 3
    assert node.after(100) == before
    assert not node.devices.is_lost


def test_what_has_ended_while_no_kubelet_ran_is_free_in_two_minutes(node: SlowNode) -> None:
    for number, count in enumerate([2, 3, 4]):
        node.admit(f"pod-{number}", count)
    node.after(2)
    node.restart_kubelet(known=3)
    node.end("default/pod-0")
    assert sorted(node.after(10).values()) == [1, 10]
    assert sorted(node.after(110).values()) == [3, 10]


def test_where_the_kubelets_checkpoint_does_not_tell_its_list_counts_once_it_has_not_grown_for_half_a_minute(
    node: SlowNode,
) -> None:
    for number, count in enumerate([2, 3, 4]):
        node.admit(f"pod-{number}", count)
    node.after(2)
    node.fsync_seconds = 10_000
    node.restart_kubelet(known=1)
    (node.directory / kubelet_file.FILE).write_text("another format")
    node.end("default/pod-2")
    assert sorted(node.after(25).values()) == [1, 10]
    node.known = 2
    assert sorted(node.after(25).values()) == [1, 10]
    assert sorted(node.after(10).values()) == [5, 10]


def test_on_which_gpu_a_vgpu_is_that_an_earlier_plugin_has_forgotten_the_kubelet_has_kept(node: SlowNode) -> None:
    for number, count in enumerate([6, 8]):
        node.admit(f"pod-{number}", count)
    before = node.after(2)
    assert sorted(before.values()) == [2, 4]
    write_parts(node.directory, parts([], vgpus_per_gpu=10))
    node.start_plugin()
    assert node.after(2) == before
    assert not node.devices.is_lost


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
def test_what_init_containers_have_is_held_where_a_killed_kubelet_has_lost_what_the_container_after_them_got(
    node: SlowNode, *, named: bool, restarts: bool
) -> None:
    node.admit("other", 5)
    node.after(10)
    node.fsync_seconds = 30
    init, main = node.admit("one", 6, init=4, pause_seconds=70)
    first, second = (one.environment["NVIDIA_VISIBLE_DEVICES"] for one in (init, main))
    assert node.after(5 if named else 0) == {first: 1, second: 4}
    node.kill_kubelet()
    if restarts:
        node.start_plugin()
    assert node._running["default/one"].received[0] == init
    for seconds in (1, 30, 100, 200):
        assert node.after(seconds)[first] == 1
    node.end("default/one")
    assert node.after(200) == {first: 5, second: 10}


@pytest.mark.parametrize("fsync_seconds", [0, 1, 40])
@pytest.mark.parametrize("seed", range(2))
def test_however_slow_a_kubelet_is_no_gpu_is_given_away_beyond_its_whole_and_all_that_ended_is_free_at_last(
    tmp_path: Path, seed: int, fsync_seconds: float
) -> None:
    node = SlowNode(tmp_path, fsync_seconds=fsync_seconds, seed=seed)
    for number in range(600):
        node.random_step()
        if number % 200 == 199:
            node.known = 1 << 20
            node.after(200)
            assert {uuid: node.after(1)[uuid] for uuid in node.room()} == node.room()
    assert min(node.steps[kind] for kind in ("allocated", "slow start", "kill")) > 4
    assert node.steps["admitted again"] > 4 or fsync_seconds < 40
