import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plugin.mps.state import (
    FRESH_SECONDS,
    PROGRAM,
    STATE_FILE,
    MpsGpu,
    MpsState,
    PublishedMpsFaults,
    StateName,
    fault,
    read_state,
    write_state,
)
from plugin.presence import alone
from plugin.shares.strategy import Mps


def state(name: StateName = "ready", *, why: str = "", checked_seconds: float = 100.0) -> MpsState:
    gpu = MpsGpu(state=name, since="2026-01-01T00:00:00+00:00", why=why, checked_seconds=checked_seconds)
    return MpsState(boot_id="this", gpus={"GPU-a": gpu})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_state(tmp_path, state("fault", why="a client failed"))
    assert read_state(tmp_path) == state("fault", why="a client failed")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"boot_id": "this"}',
        b'{"boot_id": 1, "gpus": {}}',
        b"[" * 100_000,
        b"\xff",
        b" " * (2 << 20),
    ],
)
def test_what_is_no_state_is_not_there(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE_FILE).write_bytes(content)
    assert read_state(tmp_path) is None


def test_neither_a_link_nor_a_pipe_nor_a_directory_nor_nothing_is_read(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    write_state(tmp_path, state())
    (tmp_path / STATE_FILE).rename(tmp_path / "elsewhere")
    (tmp_path / STATE_FILE).symlink_to("elsewhere")
    assert read_state(tmp_path) is None
    (tmp_path / STATE_FILE).unlink()
    os.mkfifo(tmp_path / STATE_FILE)
    assert read_state(tmp_path) is None
    (tmp_path / STATE_FILE).unlink()
    (tmp_path / STATE_FILE).mkdir()
    assert read_state(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "boot_id", "daemons"),
    [(one, "this", {"GPU-a"}) for one in ("starting", "ready", "fault", "failed")]
    + [("stopped", "this", set()), ("ready", "the next", set())],
)
def test_a_gpu_has_a_daemon_good_or_not_until_it_was_stopped(
    tmp_path: Path, name: StateName, boot_id: str, daemons: set[str]
) -> None:
    published = PublishedMpsFaults(tmp_path, boot_id=boot_id)
    assert published.daemons() == set()
    write_state(tmp_path, state(name))
    assert published.daemons() == daemons


def test_where_it_serves_is_what_it_said_last_and_before_that_where_it_is_going_to(tmp_path: Path) -> None:
    published = PublishedMpsFaults(tmp_path, boot_id="this", pipe_directory="/p")
    going_to = Mps("/p", mount_sources=f"{tmp_path}/pipes")
    assert published.serving() == going_to
    with alone(tmp_path, PROGRAM):
        for said, expected in (
            (state(), going_to),  # it starts
            (replace(state(), pipe_directory="/q", mount_sources="/run/q"), Mps("/q", mount_sources="/run/q")),
            (replace(state(), pipe_directory="/q", mount_sources=""), Mps("/q")),  # an earlier version
            (state(), Mps("/q")),  # it starts once more
        ):
            write_state(tmp_path, said)
            published(["GPU-a"])
            assert published.serving() == expected


@pytest.mark.parametrize("name", ["ready", "fault", "starting"])
def test_a_daemon_counts_while_its_supervisor_lives_and_a_moment_longer(tmp_path: Path, name: StateName) -> None:
    now_seconds = 100.0
    published = PublishedMpsFaults(tmp_path, boot_id="this", clock=lambda: now_seconds)
    with alone(tmp_path, PROGRAM):
        write_state(tmp_path, state(name))
        now_seconds = 9000.0  # it hangs
        assert published.daemons() == {"GPU-a"}
    assert published.daemons() == set()
    now_seconds = 100.0 + FRESH_SECONDS
    assert published.daemons() == {"GPU-a"}
    now_seconds += 0.1
    assert published.daemons() == set()
    write_state(tmp_path, state(name, checked_seconds=float("inf")))
    assert published.daemons() == set()


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_content_makes_reading_fail(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    directory = tmp_path_factory.getbasetemp()
    (directory / STATE_FILE).write_bytes(content)
    read_state(directory)


@pytest.mark.parametrize("now_seconds", [100.0, 120.0])
def test_containers_may_start_where_the_daemon_was_good_a_moment_ago(now_seconds: float) -> None:
    assert fault(state(), "GPU-a", now_seconds=now_seconds, boot_id="this") is None


@pytest.mark.parametrize(
    ("found", "now_seconds", "why"),
    [
        (None, 100.0, "is gpu-share mps running"),
        (MpsState(boot_id="another", gpus=state().gpus), 100.0, "is gpu-share mps running"),
        (MpsState(boot_id="this", gpus={}), 100.0, "runs no daemon for this GPU"),
        (MpsState(boot_id="this", gpus=state().gpus, looked=False), 100.0, "has started, and found no GPU yet"),
        (state(), 120.1, "not checked the MPS daemon for more than 20 s"),
        (state(), 99.0, "not checked"),
        (state(checked_seconds=float("inf")), 100.0, "not checked"),
        (state("failed", why="the daemon is gone"), 101.0, "MPS daemon failed: the daemon is gone"),
        (state("fault", why="a client failed"), 101.0, "MPS daemon fault: a client failed"),
        (state("starting", why="not yet"), 101.0, "MPS daemon starting: not yet"),
        (state("stopped"), 9000.0, "gpu-share mps has ended"),
    ],
)
def test_no_container_may_start_otherwise(found: MpsState | None, now_seconds: float, why: str) -> None:
    said = fault(found, "GPU-a", now_seconds=now_seconds, boot_id="this")
    assert said is not None
    assert why in said


def test_the_reason_does_not_change_with_the_time_that_passes() -> None:
    said = {fault(state(), "GPU-a", now_seconds=now, boot_id="this") for now in (121.0, 500.0, 90000.0)}
    assert len(said) == 1
