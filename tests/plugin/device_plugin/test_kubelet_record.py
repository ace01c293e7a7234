"""What init containers had is free once the kubelet, which never names them, has it no more in its own checkpoint."""

from collections.abc import Sequence
from errno import EMFILE
from pathlib import Path

import pytest

from plugin.device_plugin import kubelet_checkpoint
from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.kubelet_checkpoint import Kept, read_kept
from plugin.gpus.gpu import Pool
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.asked_kubelet import A, B, C, Kubelet
from tests.plugin.device_plugin.kubelet_file import FILE, entry, replace_checkpoint, write_checkpoint
from tests.plugin.device_plugin.test_kubelet_checkpoint import ONE, answer
from tests.plugin.device_plugin.walk import NAME

EARLIER = "example.com/earlier"


@pytest.fixture
def node(tmp_path: Path) -> Kubelet:
    """Give one whose kubelet has A for an init container, under a name that no plugin lists."""
    node = Kubelet(tmp_path)
    node.after(1)
    node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    write(node, A)
    node.after(1)
    return node


def write(node: Kubelet, *ids: str, number: int = 1) -> None:
    """Have the kubelet write its checkpoint: it has *ids* by the answer of that number."""
    given = answer(ONE.uuid, number=number)
    replace_checkpoint(node.socket.parent, [entry(EARLIER, [text], given) for text in ids])


def test_what_two_files_of_the_kubelet_lack_of_which_one_before_had_it_is_free(node: Kubelet) -> None:
    assert node.after(60) == {A: None}
    write(node, B)
    assert node.after(1) == {A: None}
    assert node.after(1000) == {A: None}
    write(node, B)
    assert node.after(1) == {}


def test_what_it_still_has_may_run(node: Kubelet) -> None:
    for _ in range(3):
        write(node, A, B)
        assert node.after(60) == {A: None}


def test_a_file_of_before_that_takes_the_place_of_a_newer_one_frees_nothing(node: Kubelet) -> None:
    for ids in ([], [A], [], [A]):
        write(node, *ids)
        assert node.after(60) == {A: None}


def test_a_file_of_who_had_it_before_does_not_tell_of_who_has_it_now(node: Kubelet) -> None:
    node.holdings.free([A], resource=EARLIER)
    node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    write(node, A, number=1)
    assert node.after(1) == {A: None}
    for _ in range(2):
        write(node, B)
        assert node.after(100) == {A: None}
    write(node, A, number=2)
    assert node.after(1) == {A: None}


@pytest.mark.parametrize("restart", ["none", "before", "after"])
def test_files_from_before_an_allocation_free_nothing_of_it_though_the_plugin_has_restarted(
    tmp_path: Path, restart: str
) -> None:
    node = Kubelet(tmp_path, keeps=True)
    for _ in range(3):  # two init containers and the one that the kubelet names
        node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    node.says = {"team/before/main": (A,)}
    write(node, A, number=3)
    node.after(1)
    if restart == "before":
        node.start_plugin()
        node.after(40)
    node.says = {}
    assert node.after(1) == {}
    node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    number = node.holdings.allocations
    if restart == "after":
        node.start_plugin()
        node.after(1)
    for ids in ([A], [], []):
        write(node, *ids, number=3)
        assert node.after(20) == {A: None}
    write(node, A, number=number)
    assert node.after(60) == {A: None}
    for left in ({A: None}, {}):
        write(node)
        assert node.after(1) == left


def test_what_ends_while_the_plugin_is_replaced_is_free_like_what_ends_at_other_times(tmp_path: Path) -> None:
    node = Kubelet(tmp_path, keeps=True)
    node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    write(node, A)
    node.after(1)
    node.start_plugin()
    for left in ({A: None}, {}):
        write(node)
        assert node.after(60) == left


def test_no_answer_has_a_number_that_the_kubelet_has_of_an_earlier_plugin(tmp_path: Path) -> None:
    node = Kubelet(tmp_path, keeps=True)
    write(node, B, number=9)
    node.after(1)
    node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    assert node.holdings.allocations == 10


def test_a_file_that_takes_its_place_while_another_is_read_counts_once(
    node: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(directory: Path) -> Kept | None:
        monkeypatch.undo()
        write(node)
        return read_kept(directory)

    monkeypatch.setattr("plugin.device_plugin.kubelet_record.read_kept", replaced)
    write(node, A)
    for _ in range(3):
        assert node.after(1) == {A: None}
    write(node)
    assert node.after(1) == {}


def test_what_no_file_has_had_is_free_once_one_has_a_later_answer(node: Kubelet) -> None:
    node.holdings.allocated({B: "GPU-1"}, resource=EARLIER)
    for _ in range(9):
        write(node, A)
        assert node.after(60) == {A: None, B: None}
    node.holdings.allocated({C: "GPU-2"}, resource=EARLIER)
    for left in ({A: None, B: None, C: None}, {A: None, C: None}):
        write(node, A, C, number=3)
        assert node.after(1) == left


def test_or_after_an_hour_without_one(node: Kubelet) -> None:
    node.holdings.allocated({B: "GPU-1"}, resource=EARLIER)
    for left in ({A: None, B: None}, {A: None, B: None}, {A: None}):
        node.after(1801)
        write(node, A)
        assert node.after(1) == left


@pytest.mark.parametrize(
    "content", [None, "", "{", '{"Data":{}}', '{"Data":{"PodDeviceEntries":[{"DeviceIDs":["a"]}]}}']
)
def test_a_checkpoint_that_does_not_tell_frees_nothing(node: Kubelet, content: str | None) -> None:
    node.after(60)
    file = node.socket.parent / FILE
    for _ in range(3):
        file.unlink()
        assert node.after(1) == {A: None}
        if content is not None:
            file.write_text(content)
            assert node.after(1) == {A: None}
        write(node, A)
        assert node.after(1) == {A: None}


def test_a_file_that_cannot_be_read_for_a_moment_is_read_then(node: Kubelet, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: Path, **_how: int) -> bytes:
        raise OSError(EMFILE, "no more files")

    write(node, A, B)
    with monkeypatch.context() as context:
        context.setattr(kubelet_checkpoint, "read_small_file", fail)
        assert node.after(1) == {A: None}
        assert node.holdings.record.has(A)
        assert not node.holdings.record.has(B)
    assert node.after(1) == {A: None}
    assert node.holdings.record.has(B)


def test_a_plugin_that_starts_waits_for_one_that_was_written_since(tmp_path: Path) -> None:
    node = Kubelet(tmp_path, keeps=True)
    node.holdings.allocated({A: "GPU-1"}, resource=EARLIER)
    write(node, A)
    node = Kubelet(tmp_path, keeps=True)
    assert node.after(60) == {A: None}
    write(node)
    assert node.after(60) == {A: None}
    write(node)
    assert node.after(1) == {}


class Restarted:
    """A machine on which nobody is: its kubelet's checkpoint is of before its restart, when a GPU was 4 vGPUs."""

    def __init__(self, directory: Path, ids: Sequence[str]) -> None:
        (gpu,) = simulated_gpus("1xH200")
        given = answer(gpu.uuid, of=4)
        write_checkpoint(directory, [entry(NAME, [f"{gpu.uuid}::{text}" for text in ids], given)])
        checkpoint = Checkpoint(vgpus_per_gpu=20, state_dir=directory, kubelet_dir=directory, boot_id="this")
        self.now = 0.0
        self.held = HeldVgpus(
            Holdings(lambda: (), kubelet=directory / "kubelet.sock", checkpoint=checkpoint, clock=lambda: self.now)
        )
        self.devices = Devices(Pool(gpus=(gpu,), vgpus_per_gpu=20), resource=NAME)
        self.held.follow(self.devices, are_divided=True)
        self.held.refresh()
        self.stream = iter(self.devices.watch())
        self.sent = 0

    def look(self, directory: Path) -> None:
        """Ask, a second later; the kubelet writes its checkpoint when it is sent devices."""
        self.now += 1
        before = self.devices._devices
        self.held.refresh()
        if self.devices._devices is not before:
            self.sent += 1
            (directory / FILE).unlink()
            write_checkpoint(directory, [])


def test_a_drained_node_has_the_new_number_of_vgpus_two_minutes_after_its_restart(tmp_path: Path) -> None:
    here = Restarted(tmp_path, "0123")
    assert len(here.devices.seen) == 4
    for _ in range(120):
        here.look(tmp_path)
    assert len(here.devices.seen) == 20
    assert here.sent == 3, "the kubelet is not had to write more often than it need be"
