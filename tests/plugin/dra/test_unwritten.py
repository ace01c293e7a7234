"""Claims that cannot be written down: no GPU is offered for which the next pod would fail, and all come back."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest

from plugin.dra.preparations import Preparations
from plugin.dra.specifications import device_id
from plugin.errors import HandoverError, HoldingsError
from plugin.simulated.dra_kubelet import PrepareError
from tests.plugin.dra.node import DEVICES, DraNode, health, share
from tests.plugin.dra.prepared import device, made, prepare
from tests.plugin.mps.isolated import ISOLATED, needs_mounts
from tests.plugin.shares.cdi_runtime import read_directory
from tests.plugin.waiting import wait_until

Break = Callable[[Path], Path]
CHECKPOINT = "what claims hold cannot be written there: Is a directory: make room"
SPECIFICATION = "the CDI specification of a claim cannot be changed there: File exists"
FULL = "the CDI specification of a claim cannot be changed there: No space left on device: make room"
_FILLS = """
cp -r "$0" "$0.before" && mount -t tmpfs -o size=64k cdi "$0" && cp "$0.before"/* "$0" || exit
head -c 1M /dev/zero 2>/dev/null >"$0/fill"
exec "$@"
"""


def checkpoint_is_a_directory(root: Path) -> Path:
    (path,) = root.glob("p/gpu-share.dev")
    (path / "checkpoint.json").unlink(missing_ok=True)
    (path / "checkpoint.json").mkdir()
    return path / "checkpoint.json"


def cdi_directory_is_a_file(root: Path) -> Path:
    path = root / "cdi"
    if path.is_dir():
        path.rmdir()
    path.touch()
    return path


def mend(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink()


def unspecified(directory: Path) -> Preparations:
    """Prepare a claim whose specification cannot be written."""
    on = made(directory)
    cdi_directory_is_a_file(directory)
    with pytest.raises(HandoverError, match="--cdi-dir"):
        prepare(on, "u", device(100, "GPU-0"))
    return on


def on_a_full_file_system(directory: Path) -> tuple[str, ...]:
    """Give what runs a program that finds all files of *directory* there, and no room beside them."""
    return (*ISOLATED, "sh", "-c", _FILLS, str(directory))


def tainted(node: DraNode) -> int:
    return sum("taints" in one for one in node.devices().values())


@pytest.mark.parametrize(
    ("break_it", "why"), [(checkpoint_is_a_directory, CHECKPOINT), (cdi_directory_is_a_file, SPECIFICATION)]
)
def test_no_pod_is_sent_to_a_node_on_which_no_claim_can_be_written_and_all_is_well_once_it_can(
    node: DraNode, break_it: Break, why: str
) -> None:
    node.start()
    broken = break_it(node.directory)
    claim = node.schedule("p", share(200))
    with pytest.raises(PrepareError, match=why):
        node.kubelet.prepare(claim)
    wait_until(lambda: tainted(node) == DEVICES)
    assert [why in one.faults[0].why for one in health(node).gpus] == [True, True]
    assert node.scheduler.schedule("next", {"c": share(100)}) is None
    mend(broken)
    wait_until(lambda: tainted(node) == 0)
    assert all(one.healthy for one in health(node).gpus)
    assert node.run(claim).environment["GPU_SHARE_FRACTION"] == "0.2"


def test_a_claim_that_cannot_be_taken_back_stays_given_and_the_next_pod_is_not_sent_there(node: DraNode) -> None:
    node.start()
    claim = node.schedule("p", share(700))
    node.kubelet.prepare(claim)
    broken = checkpoint_is_a_directory(node.directory)
    with pytest.raises(PrepareError, match=CHECKPOINT):
        node.kubelet.unprepare(claim)
    wait_until(lambda: tainted(node) == DEVICES)
    mend(broken)
    wait_until(lambda: tainted(node) == 0)
    node.end(claim)
    node.run(node.schedule("whole", share(1000)))


def test_a_trial_leaves_nothing_and_holds_what_is_prepared(tmp_path: Path) -> None:
    on = made(tmp_path)
    prepare(on, "first", device(500, "GPU-0"))
    before = sorted((tmp_path / "cdi").iterdir())
    kept = (tmp_path / "checkpoint.json").read_bytes()
    (tmp_path / "checkpoint.json").unlink()
    (tmp_path / "checkpoint.json").mkdir()
    with pytest.raises(HoldingsError, match=r"checkpoint\.json"):
        prepare(on, "second", device(500, "GPU-0"))
    on.restore()
    assert CHECKPOINT in on.unwritten()
    (tmp_path / "checkpoint.json").rmdir()
    on.restore()
    assert on.unwritten() == ""
    assert (tmp_path / "checkpoint.json").read_bytes() == kept
    assert sorted((tmp_path / "cdi").iterdir()) == before


def test_nothing_is_tried_while_a_call_waits_for_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on, asked, goes_on = unspecified(tmp_path), Event(), Event()
    (tmp_path / "cdi").unlink()

    def write(*_: object) -> None:
        asked.set()
        assert goes_on.wait(10)

    monkeypatch.setattr("plugin.dra.claim_files.write_checkpoint", write)
    call = Thread(target=on.unprepare, args=["u"])
    call.start()
    try:
        assert asked.wait(10)
        on.restore()
        assert SPECIFICATION in on.unwritten()
    finally:
        goes_on.set()
        call.join()


def test_a_cdi_directory_that_is_gone_can_be_written_to_since_it_is_made(tmp_path: Path) -> None:
    on = unspecified(tmp_path)
    on.restore()
    assert SPECIFICATION in on.unwritten()
    (tmp_path / "cdi").unlink()
    on.restore()
    assert on.unwritten() == ""


@needs_mounts
def test_a_plugin_that_starts_where_no_specification_can_be_written_takes_back_what_is_there_and_says_why(
    node: DraNode,
) -> None:
    first = node.start()
    claim = node.schedule("p", share(200))
    node.kubelet.prepare(claim)
    first.ends(by=signal.SIGTERM)
    node.before = on_a_full_file_system(node.cdi_dir)
    plugin = node.start()
    wait_until(lambda: tainted(node) == DEVICES)
    assert [FULL in one.faults[0].why for one in health(node).gpus] == [True, True]
    node.end(claim)
    Path(f"/proc/{plugin.process.pid}/root{node.cdi_dir}/fill").unlink()
    wait_until(lambda: tainted(node) == 0)


def test_a_claim_without_a_specification_has_one_as_soon_as_it_can_be_written_also_after_a_restart(
    tmp_path: Path,
) -> None:
    unspecified(tmp_path)
    on = made(tmp_path)
    assert SPECIFICATION in on.unwritten()
    on.restore()
    assert SPECIFICATION in on.unwritten()
    (tmp_path / "cdi").unlink()
    on.restore()
    assert set(read_directory(tmp_path / "cdi")) == {device_id("u", "r")}
    assert on.unwritten() == ""


def test_specifications_that_are_removed_and_cannot_be_written_again_are_as_soon_as_they_can(tmp_path: Path) -> None:
    on = made(tmp_path)
    for uid in ("first", "second"):
        prepare(on, uid, device(100, "GPU-0"))
    before = read_directory(tmp_path / "cdi")
    for path in (tmp_path / "cdi").iterdir():
        path.unlink()
    cdi_directory_is_a_file(tmp_path)
    on.restore()
    assert SPECIFICATION in on.unwritten()
    (tmp_path / "cdi").unlink()
    on.restore()
    assert read_directory(tmp_path / "cdi") == before


def test_what_cannot_be_removed_keeps_no_claim_from_its_specification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(path: Path, *, missing_ok: bool = False) -> None:
        raise PermissionError(1, "Operation not permitted", f"{path}{missing_ok}")

    prepare(made(tmp_path), "u", device(100, "GPU-0"))
    (path,) = (tmp_path / "cdi").iterdir()
    path.rename(path.with_name("gpu-share-claim_gone.json"))
    monkeypatch.setattr(Path, "unlink", reject)
    on = made(tmp_path)
    assert path.is_file()
    assert "Operation not permitted: give the plugin this directory" in on.unwritten()


def test_a_specification_that_is_there_word_for_word_is_left_alone(tmp_path: Path) -> None:
    prepare(made(tmp_path), "u", device(100, "GPU-0"))
    (path,) = (tmp_path / "cdi").iterdir()
    before = path.stat().st_ctime_ns
    prepare(made(tmp_path), "u", device(100, "GPU-0"))
    assert path.stat().st_ctime_ns == before


def test_a_disk_that_takes_long_to_write_a_specification_again_keeps_nobody_from_what_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = made(tmp_path)
    prepare(on, "a", device(600, "GPU-0"))
    asked, goes_on = Event(), Event()

    def slow(*_: object) -> None:
        asked.set()
        goes_on.wait(60)

    monkeypatch.setattr("plugin.dra.claim_files.restore_specification", slow)
    with ThreadPoolExecutor() as threads:
        try:
            threads.submit(on.restore)
            assert asked.wait(10)
            assert threads.submit(on.gpus).result(10) == {"GPU-0"}
        finally:
            goes_on.set()
