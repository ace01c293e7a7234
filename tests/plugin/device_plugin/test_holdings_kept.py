"""What is held as the next plugin finds it, and where it cannot be written."""

from pathlib import Path

import pytest

from plugin.errors import TenantsError
from plugin.shares.parts_file import FILE
from tests.plugin.device_plugin.asked_kubelet import A, B, C, Kubelet


@pytest.mark.parametrize("away_seconds", [1, 300])
def test_what_an_earlier_plugin_knew_is_held_until_the_kubelet_has_had_time_to_name_it_however_late_it_answers(
    tmp_path: Path, away_seconds: float
) -> None:
    before = Kubelet(tmp_path, keeps=True)
    before.holdings.allocated({A: "GPU-9"}, resource="gpu-share.dev/vgpu", of=10)
    before.says = {"team/a/main": (A,)}
    before.after(1)
    node = Kubelet(tmp_path, keeps=True)
    node.says = None
    node.now += away_seconds
    with pytest.raises(TenantsError):
        node.holdings.refresh()
    node.says = {}
    assert node.after(1).keys() == {A}
    assert node.after(28).keys() == {A}
    node.says = {"team/a/main": (A,)}
    assert node.after(1) == {A: "team/a/main"}
    assert node.holdings.held()[A].gpu == "GPU-9"
    node.says = {}
    assert node.after(2) == {}


def test_what_cannot_be_written_is_a_fault_from_the_second_time_on_until_it_can(tmp_path: Path) -> None:
    node = Kubelet(tmp_path, keeps=True)
    node.after(1)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    assert "Is a directory" in node.holdings.allocated({A: "GPU-1"})
    assert node.holdings.unwritten == ""
    node.says = None  # whether or not the kubelet answers
    for _ in range(2):
        with pytest.raises(TenantsError):
            node.after(1)
        assert "what is held cannot be written" in node.holdings.unwritten
    (tmp_path / FILE).rmdir()
    with pytest.raises(TenantsError):
        node.after(1)
    assert node.holdings.unwritten == ""


def test_that_it_cannot_be_written_what_is_held_is_seen_before_anything_is_allocated(tmp_path: Path) -> None:
    node = Kubelet(tmp_path, keeps=True)
    node.after(1)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()
    for _ in range(7):
        node.after(1)
    assert "what is held cannot be written" in node.holdings.unwritten


@pytest.mark.parametrize("restarts", [1, 2])
def test_what_init_containers_left_is_free_when_their_pod_ends_although_plugins_ended_meanwhile(
    tmp_path: Path, restarts: int
) -> None:
    node = Kubelet(tmp_path, keeps=True)
    node.holdings.allocated({A: "GPU-1", B: "GPU-1"}, resource="example.com/earlier", of=10)
    node.holdings.allocated({A: "GPU-1"}, resource="example.com/earlier", of=10)
    node.says = {"team/a/main": (A,)}
    node.after(1)
    for _ in range(restarts):
        node = Kubelet(tmp_path, keeps=True)
        node.says = {"team/a/main": (A,)}
        assert node.after(1) == {A: "team/a/main", B: None}
    node.holdings.allocated({C: "GPU-2"}, of=10)  # of another pod
    node.after(40)
    node.says = {}
    assert node.after(1) == {C: None}


def test_where_a_record_was_lost_once_a_later_restart_of_the_kubelet_makes_nobody_blind_again(tmp_path: Path) -> None:
    (tmp_path / "vgpus.json").write_text("{")
    node = Kubelet(tmp_path, keeps=True)
    node.says = {"team/a/main": (A,)}
    blind = []
    for seconds in (1, 40, 1):
        node.after(seconds)
        blind.append(node.holdings.is_blind)
    node.restart()
    node.after(1)
    assert (blind, node.holdings.is_blind) == ([True, False, False], False)
