"""What `gpu-share plugin status` says where no plugin runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plugin.health.state import NodeHealth, read_node_health, write_node_health
from plugin.health.status import show
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

    monkeypatch.setattr("plugin.health.status.read_node_health", read)
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
