"""What becomes of the names of a daemon's sockets, and that the daemon is found all the same."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugin.mps.held_sockets import HeldSockets
from tests.plugin.mps.conftest import UUID, names


@pytest.fixture
def directory(pipes: Path) -> Iterator[Path]:
    """Give a directory in which both sockets of a daemon are listened on."""
    (directory := pipes / UUID).mkdir()
    with ExitStack() as listening:
        for name in ("control", "control_privileged"):
            listening.enter_context(socket.socket(socket.AF_UNIX)).bind(str(directory / name))
        yield directory


@pytest.fixture
def sockets(directory: Path, root: Path) -> Iterator[HeldSockets]:
    sockets = HeldSockets(directory, root / "links")
    sockets.take()
    yield sockets
    sockets.release()


def test_a_renamed_socket_has_its_name_again(sockets: HeldSockets, directory: Path) -> None:
    made = (directory / "control").stat()
    assert not sockets.put_back()
    (directory / "control").rename(directory / "mine")
    assert not sockets.are_there()
    assert sockets.put_back()
    assert (directory / "control").stat().st_ino == made.st_ino
    assert sockets.are_there()
    assert names(directory) == ["control", "control_privileged", "mine"]


@pytest.mark.parametrize("planted", ["socket", "link", "file"])
def test_what_a_tenant_put_in_its_place_makes_way(sockets: HeldSockets, directory: Path, planted: str) -> None:
    (control := directory / "control").rename(directory / "mine")
    if planted == "link":
        control.symlink_to("mine")
    elif planted == "file":
        control.touch()
    else:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(control))
    assert sockets.put_back()
    assert control.lstat().st_ino == (directory / "mine").stat().st_ino
    assert names(directory) == ["control", "control_privileged", "mine"]


@pytest.mark.parametrize("name", ["control", "control_privileged"])
def test_a_removed_socket_is_missed_and_led_to_all_the_same(directory: Path, root: Path, name: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        (directory / name).unlink()
        listening.bind(str(directory / name))
        listening.listen()
        held = HeldSockets(directory, root / "links")
        held.take()
        (directory / name).unlink()
        assert (held.put_back(), held.are_there()) == (False, False)
        client.connect(str(held.led_to() / name))
        listening.accept()[0].close()
        held.release()


def test_no_link_is_held(directory: Path, root: Path) -> None:
    (directory / "control").rename(directory / "mine")
    (directory / "control").symlink_to("mine")
    (directory / "control_privileged").unlink()
    sockets = HeldSockets(directory, root / "links")
    sockets.take()
    assert not sockets


def test_a_daemon_that_has_made_no_socket_yet_has_lost_none(pipes: Path, root: Path) -> None:
    (pipes / UUID).mkdir()
    sockets = HeldSockets(pipes / UUID, root / "links")
    sockets.take()
    assert sockets.are_there()
