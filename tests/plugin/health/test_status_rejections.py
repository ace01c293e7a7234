"""What `gpu-share plugin status` says where no plugin runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plugin.health.running import NotRunningError, is_among_processes, running
from plugin.health.state import NodeHealth, Waiting, read_node_health, write_node_health
from plugin.health.status import show
from plugin.presence import alone
from plugin.state_files import boot_seconds
from tests.plugin.health.published import healthy, node, status


def rejected(capsys: pytest.CaptureFixture[str], directory: Path) -> str:
    """Ask for the status in both forms; the one line that rejects it."""
    said = []
    for output in ("text", "json"):
        assert show(directory, output=output) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        said.append(captured.err)
    assert said[0] == said[1]
    return said[0]


def test_without_a_plugin_the_command_ends_with_2_and_one_line(tmp_path: Path) -> None:
    ran = status(tmp_path / "missing")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"gpu-share plugin status: no plugin runs here: {tmp_path}/missing/plugin.json does not exist: "
        "start gpu-share plugin, or give its --state-dir\n"
    )


def test_a_file_from_before_the_node_started_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_node_health(tmp_path, node(healthy(0), boot_id="another"))
    assert "is from before this node started: start gpu-share plugin" in rejected(capsys, tmp_path)


def test_a_plugin_that_was_ended_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_node_health(tmp_path, node(healthy(0), ended=True))
    assert "says that process 7 was stopped: start gpu-share plugin" in rejected(capsys, tmp_path)


@pytest.mark.parametrize(
    ("age_seconds", "words"),
    [(21, "last updated 21 s ago by process 7"), (7300, "2 h ago"), (-30, "at a time in the future")],
)
def test_a_file_without_a_fresh_heartbeat_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], age_seconds: float, words: str
) -> None:
    write_node_health(tmp_path, node(healthy(0), heartbeat_seconds=boot_seconds() - age_seconds))
    said = rejected(capsys, tmp_path)
    assert words in said
    assert "see the plugin's log" in said


def test_a_file_that_is_written_while_the_command_starts_is_not_of_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(directory: Path) -> NodeHealth | None:
        write_node_health(directory, node(healthy(0)))
        return read_node_health(directory)

    monkeypatch.setattr("plugin.health.running.read_node_health", read)
    assert show(tmp_path, output="text") == 0


def test_a_heartbeat_of_a_moment_ago_is_good(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0), heartbeat_seconds=boot_seconds() - 15))
    assert show(tmp_path, output="text") == 0


@contextmanager
def another_user() -> Iterator[None]:
    if os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000, b"{}", b" " * (1024 * 1024 + 1)])
def test_what_no_plugin_wrote_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    (tmp_path / "plugin.json").write_bytes(content)
    assert "was not written by a plugin: remove it" in rejected(capsys, tmp_path)


def test_links_pipes_and_directories_are_rejected_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plugin.json"
    path.symlink_to(tmp_path / "elsewhere")
    assert "was not written by a plugin" in rejected(capsys, tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert "was not written by a plugin" in rejected(capsys, tmp_path)
    path.unlink()
    path.mkdir()
    assert "was not written by a plugin" in rejected(capsys, tmp_path)


@pytest.mark.parametrize("closed", ["plugin.json", "."])
def test_a_file_that_only_others_may_read_is_named_as_such(
    capsys: pytest.CaptureFixture[str], directory: Path, closed: str
) -> None:
    directory.chmod(0o755)
    write_node_health(directory, node(healthy(0)))
    (directory / closed).chmod(0)
    with another_user():
        assert "may not be read by this user: run this as root" in rejected(capsys, directory)
    directory.chmod(0o700)


def test_a_plugin_whose_process_is_gone_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with alone(tmp_path, "plugin"):
        write_node_health(tmp_path, node(healthy(0)))
        assert show(tmp_path, output="text") == 0
    capsys.readouterr()
    said = rejected(capsys, tmp_path)
    assert "no plugin runs here" in said
    assert "was last updated 0 s ago, its process 7 is gone: see the log of its last run" in said


def test_of_a_process_that_is_gone_is_said_what_it_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with alone(tmp_path, "plugin"):
        write_node_health(tmp_path, node(waiting=Waiting(why="no driver", since="")))
    assert "its process 7 is gone, and no GPU was shared: no driver: see" in rejected(capsys, tmp_path)


@pytest.mark.parametrize(
    ("replaced", "last"),
    [
        ({}, "was last updated 3 min ago"),
        ({"ended": True}, "was last updated 3 min ago"),
        ({"boot_id": "another"}, "is from before this node started"),
    ],
)
def test_a_plugin_that_lives_and_does_not_write_is_said_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], replaced: dict[str, Any], last: str
) -> None:
    write_node_health(tmp_path, node(healthy(0), heartbeat_seconds=boot_seconds() - 200, **replaced))
    with alone(tmp_path, "plugin"):
        said = rejected(capsys, tmp_path)
    assert "gpu-share plugin runs here, but hangs or cannot write its state: " in said
    assert f"{last}: see the plugin's log" in said


def test_a_plugin_that_has_never_written_is_known_by_its_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with alone(tmp_path, "plugin"):
        assert "runs here, but has just started or cannot write its state" in rejected(capsys, tmp_path)


def process(proc: Path, number: int, arguments: list[str], **variables: str) -> None:
    entry = proc / str(number)
    entry.mkdir(parents=True)
    (entry / "cmdline").write_text("".join(f"{one}\0" for one in arguments))
    (entry / "environ").write_text("".join(f"{name}={value}\0" for name, value in variables.items()))


@pytest.mark.parametrize(
    ("arguments", "variables", "runs"),
    [
        (["/usr/bin/python3", "/usr/local/bin/gpu-share", "plugin"], {}, True),
        (["python", "-m", "gpu_share", "plugin", "--wait-for-gpus"], {}, True),
        (["gpu-share", "plugin", "--state-dir", "/elsewhere"], {}, False),
        (["gpu-share", "plugin", "--state-dir=/run/gpu-share"], {"GPU_SHARE_STATE_DIR": "/elsewhere"}, True),
        (["gpu-share", "plugin"], {"GPU_SHARE_STATE_DIR": "/elsewhere"}, False),
        (["gpu-share", "plugin", "status"], {}, False),
        (["gpu-share", "plugin", "recover", "0"], {}, False),
        (["gpu-share", "mps"], {}, False),
        (["vi", "plugin"], {}, False),
        ([], {}, False),
    ],
)
def test_a_plugin_without_a_lock_is_known_among_the_processes(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], *, runs: bool
) -> None:
    process(tmp_path, 7, arguments, **variables)
    (tmp_path / "8").mkdir()  # has ended meanwhile
    assert is_among_processes(Path("/run/gpu-share"), tmp_path) is runs


def test_a_plugin_that_can_write_nothing_at_all_is_not_said_to_be_missing(tmp_path: Path) -> None:
    process(tmp_path / "proc", 7, ["gpu-share", "plugin", "--state-dir", str(tmp_path / "state")])
    with pytest.raises(NotRunningError, match="runs here, but has just started or cannot write its state"):
        running(tmp_path / "state", proc=tmp_path / "proc")
