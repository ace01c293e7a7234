"""What the kernel shows of the sockets that a process has."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from plugin.mps.process_sockets import bound_to

NAMES = ("control", "control_privileged")
Shown = Callable[[Path], dict[str, list[int]]]


@pytest.fixture
def shown() -> Iterator[Shown]:
    """Give the inodes of what this process has bound, by name."""
    opened: list[int] = []

    def shown(directory: Path) -> dict[str, list[int]]:
        found = bound_to(os.getpid(), NAMES, directory)
        opened.extend(chain(*found.values()))
        return {name: [os.fstat(file).st_ino for file in files] for name, files in found.items()}

    yield shown
    for file in opened:
        os.close(file)


def bound(one: socket.socket, path: Path) -> int:
    one.bind(str(path))
    return path.stat().st_ino


@pytest.mark.parametrize("renamed", [True, False])
def test_what_a_process_has_bound_is_shown_whatever_became_of_the_name(
    root: Path, shown: Shown, *, renamed: bool
) -> None:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other, socket.socket() as of_ip:
        made = bound(one, path := root / "control")
        bound(other, root / "other")
        of_ip.bind(("127.0.0.1", 0))
        path.rename(root / "mine") if renamed else path.unlink()
        assert shown(root) == {"control": [made]}


def test_of_several_by_one_name_it_is_the_first_that_the_process_had(root: Path, shown: Shown) -> None:
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as sent:
        made = bound(first, path := root / "control")
        path.rename(root / "mine")
        other = bound(sent, path)
        assert sent.fileno() > first.fileno()
        assert shown(root) == {"control": [made, other]}


@pytest.mark.parametrize("listens", [True, False])
def test_one_that_takes_connections_or_was_bound_there_is_before_one_that_a_client_sent(
    root: Path, shown: Shown, *, listens: bool
) -> None:
    (root / "elsewhere").mkdir()
    with socket.socket(socket.AF_UNIX) as sent, socket.socket(socket.AF_UNIX) as own:
        other = bound(sent, root / "elsewhere/control")
        made = bound(own, root / "control")
        assert sent.fileno() < own.fileno()
        if listens:
            own.listen()
        assert shown(root if not listens else root / "another view") == {"control": [made]} != {"control": [other]}


def test_a_process_that_has_ended_shows_none() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
        assert bound_to(process.pid, NAMES, Path("/")) == {}
