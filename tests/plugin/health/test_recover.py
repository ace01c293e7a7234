"""`gpu-share plugin recover`, from the command to the kubelet's devices."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from plugin.gpus.nvml import Nvml
from plugin.health.recover import chosen, recover
from plugin.health.recovery_request import TAKEN_WITHIN_SECONDS, RecoveryRequest, RecoveryRequests, submit
from plugin.health.state import read_node_health, write_node_health
from plugin.state_files import boot_id, boot_seconds
from tests.plugin.health.conftest import StartNode
from tests.plugin.health.published import healthy, node
from tests.plugin.health.watched_node import logged
from tests.plugin.nvml_library import Script
from tests.plugin.waiting import wait_until

FIRST, SECOND = (f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in (0, 1))
GPUS = [healthy(0, uuid="GPU-aa11"), healthy(1, uuid="GPU-aa22"), healthy(2, uuid="GPU-bb33")]
REASON = "rows were remapped, tested with dcgmi"


def request(**replaced: object) -> RecoveryRequest:
    made = RecoveryRequest(
        id="1", boot_id=boot_id(), asked_seconds=boot_seconds(), gpu_uuid=FIRST, faults=(), reason=REASON, by="root"
    )
    return msgspec.structs.replace(made, **replaced)


@pytest.mark.parametrize(
    ("text", "index"),
    [("0", 0), ("2", 2), ("GPU-aa22", 1), ("gpu-AA22", 1), ("aa11", 0), ("b", 2), ("GPU-b", 2)],
)
def test_a_gpu_is_named_by_number_uuid_or_the_beginning_of_it(text: str, index: int) -> None:
    assert chosen(GPUS, text).index == index


@pytest.mark.parametrize(
    ("text", "have"),
    [
        ("a", "0 GPU-aa11, 1 GPU-aa22$"),
        ("7", "2 GPU-bb33$"),
        ("cc", "2 GPU-bb33$"),
        ("", "2 GPU-bb33$"),
        ("GPU-", "of: 0 GPU-aa11"),
    ],
)
def test_a_name_of_none_or_several_is_told_what_there_is(text: str, have: str) -> None:
    with pytest.raises(LookupError, match=have):
        chosen(GPUS, text)


@pytest.mark.parametrize(
    ("text", "index"),
    [("0", 0), ("1", 1), ("GPU-1", 0), ("123a", 0), ("123", 0), ("12", None), ("3", 1), ("9", None)],
)
def test_digits_are_a_number_or_the_beginning_of_a_uuid_and_nothing_if_both(text: str, index: int | None) -> None:
    uuids = {0: "GPU-123ab", 1: "GPU-34cd", 12: "GPU-a0d9"}
    gpus = [healthy(number, uuid=uuid) for number, uuid in uuids.items()]
    if index is not None:
        assert chosen(gpus, text).index == index
    else:
        with pytest.raises(LookupError, match="expected the number or UUID of one GPU, of: "):
            chosen(gpus, text)


def test_what_fits_two_gpus_is_called_ambiguous() -> None:
    gpus = [healthy(0, uuid="GPU-11ab"), healthy(11, uuid="GPU-34cd")]
    with pytest.raises(LookupError, match=r"'11' is ambiguous: .* of: 0 GPU-11ab, 11 GPU-34cd$"):
        chosen(gpus, "11")


def test_a_whole_uuid_names_its_gpu_though_another_begins_with_it() -> None:
    assert chosen([healthy(0, uuid="GPU-aa"), healthy(1, uuid="GPU-aa1")], "GPU-aa").index == 0


def test_a_sticky_fault_is_cleared_in_the_plugin_that_runs_with_who_and_why(
    start: StartNode,
    nvml: Nvml,
    script: Script,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    script.say("tells_nothing")
    watched = start(nvml=nvml, boot_id=boot_id())
    script.say("xid 1 63")
    wait_until(lambda: watched.sources(1) == ["xid"])
    assert recover(watched.state_dir, "1", reason=REASON) == 0
    said = capsys.readouterr().out
    assert said == f"GPU 1 {SECOND}: cleared: the driver reported XID 63; it is healthy\n"
    watched.becomes(10, 10)
    health = read_node_health(watched.state_dir)
    assert health is not None
    told = health.gpus[1].recovery
    assert told is not None
    assert (told.reason, told.cleared, told.refused) == (REASON, ("the driver reported XID 63",), "")
    (line,) = logged(caplog, "fault cleared by an administrator")
    assert (line["gpu"], line["reason"]) == (SECOND, REASON)
    assert not (watched.state_dir / "recover.json").exists()
    assert recover(watched.state_dir, SECOND, reason=REASON) == 1
    assert "nothing was cleared: it is healthy" in capsys.readouterr().err


def test_a_reason_and_a_user_that_are_no_utf_8_are_written_as_far_as_they_are(
    start: StartNode, nvml: Nvml, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.say("tells_nothing")
    watched = start(nvml=nvml, boot_id=boot_id())
    script.say("xid 1 63")
    wait_until(lambda: watched.sources(1) == ["xid"])
    monkeypatch.setenv("SUDO_USER", "ren\udce9")
    assert recover(watched.state_dir, "1", reason="caf\udcff closed") == 0
    told = watched.health.gpus[1].recovery
    assert told is not None
    assert (told.reason, told.by.endswith("(sudo by ren?)")) == ("caf? closed", True)


def test_what_is_still_seen_is_rejected(
    start: StartNode, nvml: Nvml, script: Script, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    watched = start(nvml=nvml, boot_id=boot_id())
    script.say("lost 0")
    wait_until(lambda: watched.sources(0) == ["lost"])
    assert recover(watched.state_dir, "0", reason=REASON) == 1
    assert "nothing was cleared: NVML does not reach it: GPU is lost" in capsys.readouterr().err
    assert watched.sources(0) == ["lost"]
    assert [line["gpu"] for line in logged(caplog, "recovery refused")] == [FIRST]


def test_a_plugin_that_does_not_answer_leaves_no_request_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    assert recover(tmp_path, "0", reason=REASON, within_seconds=0.1) == 1
    assert "has not answered" in capsys.readouterr().err
    assert RecoveryRequests(tmp_path, boot_id=boot_id()).take() is None


@pytest.mark.parametrize(
    ("gpu", "reason", "said"),
    [
        ("0", " \n ", "--reason: expected 1 to 200"),
        ("0", "x" * 201, "got 201"),
        ("5", REASON, "'5': expected the number"),
    ],
)
def test_a_call_that_cannot_be_meant_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpu: str, reason: str, said: str
) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    assert recover(tmp_path, gpu, reason=reason) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "recover.json").exists()


def test_without_a_plugin_nothing_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recover(tmp_path, "0", reason=REASON) == 2
    assert "no plugin runs here" in capsys.readouterr().err


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    submit(tmp_path, request())
    assert RecoveryRequests(tmp_path, boot_id=boot_id()).take() is not None
    assert RecoveryRequests(tmp_path, boot_id=boot_id()).take() is None
    assert list(tmp_path.iterdir()) == []


def _group_writable(path: Path) -> None:
    path.chmod(0o664)


def _others(path: Path) -> None:
    os.chown(path, 12345, 12345)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _nonsense(path: Path) -> None:
    path.write_text("[" * 100_000)


@pytest.mark.parametrize("change", [_group_writable, _others, _link, _pipe, _nonsense])
def test_what_root_alone_cannot_have_written_is_removed_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Callable[[Path], None]
) -> None:
    if change is _others and os.geteuid():
        pytest.skip("needs root")
    submit(tmp_path, request())
    change(tmp_path / "recover.json")
    assert RecoveryRequests(tmp_path, boot_id=boot_id()).take() is None
    assert not (tmp_path / "recover.json").exists()
    assert len(logged(caplog, "recovery request ignored")) == 1


def test_what_cannot_be_removed_is_said_once_for_each_time_it_is_put_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    requests = RecoveryRequests(tmp_path, boot_id=boot_id())
    for said in (1, 2):
        (tmp_path / "recover.json").mkdir()
        for _ in range(3):
            assert requests.take() is None
        assert len(logged(caplog, "recovery request ignored")) == said
        (tmp_path / "recover.json").rmdir()
        assert requests.take() is None
    submit(tmp_path, request())
    assert requests.take() is not None


@pytest.mark.parametrize(
    "replaced",
    [{"boot_id": "another"}, {"asked_seconds": boot_seconds() - TAKEN_WITHIN_SECONDS - 1}, {"asked_seconds": 1e12}],
)
def test_a_request_of_another_time_is_removed_and_ignored(tmp_path: Path, replaced: dict[str, object]) -> None:
    submit(tmp_path, request(**replaced))
    assert RecoveryRequests(tmp_path, boot_id=boot_id()).take() is None
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_the_place_of_a_request_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "recover.json").mkdir()
    assert RecoveryRequests(tmp_path, boot_id=boot_id()).take() is None
