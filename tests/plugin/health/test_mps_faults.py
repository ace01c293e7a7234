import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.mps.state import (
    FRESH_SECONDS,
    PROGRAM,
    STATE_FILE,
    MpsGpu,
    MpsState,
    PublishedMpsFaults,
    StateName,
    read_state,
    write_state,
)
from plugin.presence import alone

NOW = 1000.0


@pytest.fixture(autouse=True)
def running(tmp_path: Path) -> Iterator[None]:
    """Have a supervisor: what is published is worth nothing without one."""
    with alone(tmp_path, PROGRAM):
        yield


def publish(directory: Path, name: StateName = "ready", *, checked_seconds: float = NOW, boot_id: str = "boot") -> None:
    gpu = MpsGpu(state=name, since="2026-01-01T00:00:00+00:00", why="died", checked_seconds=checked_seconds)
    write_state(directory, MpsState(boot_id=boot_id, gpus={"GPU-0": gpu}))


def test_a_daemon_is_good_while_its_supervisor_says_so(tmp_path: Path) -> None:
    faults = PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: NOW)
    publish(tmp_path)
    assert faults(["GPU-0"]) == {}
    assert list(faults(["GPU-0", "GPU-1"])) == ["GPU-1"]


def test_what_nobody_has_published_is_bad(tmp_path: Path) -> None:
    faults = PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: NOW)
    assert list(faults(["GPU-0"])) == ["GPU-0"]
    publish(tmp_path, boot_id="an earlier start")
    assert list(faults(["GPU-0"])) == ["GPU-0"]


def test_a_supervisor_that_stops_publishing_is_noticed_though_its_file_stays(tmp_path: Path) -> None:
    seconds = [NOW]
    faults = PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: seconds[0])
    publish(tmp_path)
    assert faults(["GPU-0"]) == {}
    seconds[0] += FRESH_SECONDS + 1
    assert list(faults(["GPU-0"])) == ["GPU-0"]


def test_each_new_file_counts_and_so_does_its_end(tmp_path: Path) -> None:
    faults = PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: NOW)
    publish(tmp_path)
    assert faults(["GPU-0"]) == {}
    publish(tmp_path, "fault")
    assert "died" in faults(["GPU-0"])["GPU-0"]
    publish(tmp_path)
    assert faults(["GPU-0"]) == {}
    (tmp_path / STATE_FILE).unlink()
    assert list(faults(["GPU-0"])) == ["GPU-0"]


def test_a_file_that_is_the_same_is_not_read_again(tmp_path: Path) -> None:
    faults = PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: NOW)
    publish(tmp_path)
    assert faults(["GPU-0"]) == {}
    path = tmp_path / STATE_FILE
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"ready"', b'"fault"'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert faults(["GPU-0"]) == {}


def test_what_is_published_while_it_is_looked_for_is_not_of_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [NOW]

    def read(directory: Path) -> MpsState | None:
        seconds[0] += 0.001  # the supervisor is faster
        publish(directory, checked_seconds=seconds[0])
        return read_state(directory)

    monkeypatch.setattr("plugin.mps.state.read_state", read)
    publish(tmp_path)
    assert PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: seconds[0])(["GPU-0"]) == {}
