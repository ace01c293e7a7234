"""What `gpu-share plugin status` tells of MPS daemons."""

from pathlib import Path

import pytest

from plugin.health.state import (
    Fault,
    write_node_health,
)
from plugin.health.status import show
from plugin.mps.state import MpsGpu, write_state
from plugin.state_files import boot_seconds
from tests.plugin.health.published import ago, daemons, healthy, node


def test_the_mps_daemon_of_a_gpu_is_told_where_there_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now = boot_seconds()
    write_state(
        tmp_path,
        daemons(
            GPU_0=MpsGpu(state="ready", since=ago(hours=1.5), checked_seconds=now),
            GPU_1=MpsGpu(state="fault", since=ago(seconds=90), checked_seconds=now, why="server 47 is in FAULT"),
        ),
    )
    write_node_health(tmp_path, node(healthy(0), healthy(1), healthy(2)))
    assert show(tmp_path, output="text") == 0
    _, _, ready, _, fault, last = capsys.readouterr().out.splitlines()
    assert ready.startswith("  MPS daemon: ready (since 20")
    assert ready.endswith(" UTC, for 1 h)")
    assert fault.startswith("  MPS daemon: not ready, MPS daemon fault: server 47 is in FAULT (since 20")
    assert last.startswith("GPU 2")


def test_a_daemon_that_nobody_looks_after_any_more_is_not_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = boot_seconds() - 25
    write_state(tmp_path, daemons(GPU_0=MpsGpu(state="ready", since=ago(hours=1), checked_seconds=seen)))
    write_node_health(tmp_path, node(healthy(0)))
    assert show(tmp_path, output="text") == 0
    assert "MPS daemon: not ready, gpu-share mps has not checked" in capsys.readouterr().out


def test_what_the_plugin_says_of_the_daemon_is_not_said_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down = MpsGpu(state="failed", since=ago(seconds=9), checked_seconds=boot_seconds(), why="it hangs")
    write_state(tmp_path, daemons(GPU_0=down))
    fault = Fault(source="mps", why="MPS daemon failed: it hangs", since=ago(seconds=9), comes_back="once it answers")
    write_node_health(tmp_path, node(healthy(0, faults=(fault,))))
    assert show(tmp_path, output="text") == 1
    assert capsys.readouterr().out.count("it hangs") == 1


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b"[" * 100_000])
def test_an_unreadable_file_of_the_mps_daemons_is_as_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (tmp_path / "mps.json").write_bytes(content)
    write_node_health(tmp_path, node(healthy(0)))
    assert show(tmp_path, output="text") == 0
    assert "MPS" not in capsys.readouterr().out
