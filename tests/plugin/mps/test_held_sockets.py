"""What becomes of the names of a daemon's sockets, and that the daemon is found all the same."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugin.mps.held_sockets import HeldSockets
from tests.plugin.mps.conftest import UUID, close_to_a_user, names

NAMES = ("control", "control_privileged")
Made = Callable[[str], Path]


@pytest.fixture
def made(pipes: Path) -> Iterator[Made]:
    """Make the directory of a GPU, with both sockets of a daemon."""
    with ExitStack() as bound:

        def made(uuid: str) -> Path:
            (directory := pipes / uuid).mkdir()
            for name in NAMES:
                bound.enter_context(socket.socket(socket.AF_UNIX)).bind(str(directory / name))
            return directory

        yield made


@pytest.fixture
def directory(made: Made) -> Path:
    return made(UUID)


@pytest.fixture
def sockets(directory: Path, root: Path) -> Iterator[HeldSockets]:
    sockets = HeldSockets(directory, root / "links")
    sockets.take([])
    yield sockets
    sockets.release()


def test_a_renamed_socket_has_its_name_again(sockets: HeldSockets, directory: Path) -> None:
    made = (directory / "control").stat()
    assert not sockets.put_back()
    (directory / "control").rename(directory / "mine")
    assert sockets.lost() == ["control"]
    assert sockets.put_back()
    assert (directory / "control").stat().st_ino == made.st_ino
    assert sockets.lost() == []
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
    beside = ["control.beside"] if planted == "socket" else []  # it may be another daemon's, which has no other name
    assert names(directory) == ["control", *beside, "control_privileged", "mine"]


@pytest.mark.parametrize("name", ["control", "control_privileged"])
def test_a_removed_socket_is_missed_and_led_to_all_the_same(directory: Path, root: Path, name: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        (directory / name).unlink()
        listening.bind(str(directory / name))
        listening.listen()
        held = HeldSockets(directory, root / "links")
        held.take([])
        (directory / name).unlink()
        assert (held.put_back(), held.lost()) == (False, [name])
        client.connect(str(held.led_to() / name))
        listening.accept()[0].close()
        held.release()


def test_no_link_is_held(directory: Path, root: Path) -> None:
    (directory / "control").rename(directory / "mine")
    (directory / "control").symlink_to("mine")
    (directory / "control_privileged").unlink()
    sockets = HeldSockets(directory, root / "links")
    sockets.take([])
    assert not sockets


def test_a_daemon_that_has_made_no_socket_yet_has_lost_none(pipes: Path, root: Path) -> None:
    (pipes / UUID).mkdir()
    sockets = HeldSockets(pipes / UUID, root / "links")
    sockets.take([])
    assert sockets.lost() == []


def inodes(*directories: Path) -> list[int]:
    return [(directory / name).lstat().st_ino for directory in directories for name in NAMES]


def swap(one: Path, other: Path) -> None:
    one.rename(between := one.with_name("between"))
    other.rename(one)
    between.rename(other)


def test_the_two_sockets_of_a_daemon_whose_names_were_swapped_have_their_own_again(
    sockets: HeldSockets, directory: Path
) -> None:
    made = inodes(directory)
    swap(directory / "control", directory / "control_privileged")
    assert sockets.lost() == [*NAMES]
    assert (sockets.put_back(), sockets.put_back()) == (True, False)
    assert (inodes(directory), names(directory)) == (made, [*NAMES])


def test_two_daemons_whose_directories_were_swapped_have_their_sockets_again(
    sockets: HeldSockets, directory: Path, made: Made, root: Path
) -> None:
    neighbours = HeldSockets(other := made("GPU-other"), root / "links of other")
    neighbours.take([])
    before = inodes(directory, other)
    swap(directory, other)
    for held in (sockets, neighbours, sockets, neighbours):
        held.put_back()
    assert (inodes(directory, other), names(directory), names(other)) == (before, [*NAMES], [*NAMES])
    neighbours.release()


def test_another_daemons_socket_in_its_place_is_none_of_its_own(
    sockets: HeldSockets, directory: Path, made: Made
) -> None:
    (made("GPU-other") / "control").replace(directory / "control")
    assert (sockets.put_back(), sockets.lost()) == (False, ["control"])


def test_a_socket_has_the_mode_again_that_its_daemon_made_it_with(sockets: HeldSockets, directory: Path) -> None:
    (directory / "control").chmod(0o666)
    assert not sockets.put_back()  # a daemon that does not answer yet may be at it still
    sockets.keep_modes()
    (directory / "control").chmod(0o600)
    sockets.keep_modes()
    assert sockets.put_back()
    assert (directory / "control").stat().st_mode & 0o7777 == 0o666
    assert not sockets.put_back()


def test_a_mode_that_became_narrower_before_its_daemon_answered_is_not_the_daemons(
    sockets: HeldSockets, directory: Path
) -> None:
    sockets.release()
    (directory / "control").chmod(0o666)
    sockets.find([])
    (directory / "control").chmod(0o600)
    sockets.keep_modes()
    assert sockets.put_back()
    assert (directory / "control").stat().st_mode & 0o222 == 0o222


def test_a_socket_that_an_acl_closed_to_some_users_is_open_to_them_again(sockets: HeldSockets, directory: Path) -> None:
    close_to_a_user(control := directory / "control")
    assert (sockets.put_back(), sockets.put_back()) == (True, False)
    assert os.listxattr(control) == []


def test_a_socket_that_was_put_in_its_place_before_it_was_held_is_not_held(directory: Path, root: Path) -> None:
    before = inodes(directory)
    (control := directory / "control").rename(directory / "mine")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(directory / "other"))
        (directory / "other").rename(control)
        sockets = HeldSockets(directory, root / "links")
        assert sockets.find([os.getpid()])
    assert inodes(directory) == before
    sockets.release()


def test_a_socket_that_its_daemon_makes_anew_is_held_in_place_of_the_first(pipes: Path, root: Path) -> None:
    (control := pipes / UUID / "control").parent.mkdir()
    sockets = HeldSockets(pipes / UUID, root / "links")
    with socket.socket(socket.AF_UNIX) as first:
        first.bind(str(control))
        sockets.find([os.getpid()])
        control.unlink()
    with socket.socket(socket.AF_UNIX) as second:
        second.bind(str(control))
        assert sockets.lost() == ["control"]
        assert not sockets.find([os.getpid()])
        assert sockets.lost() == []
    sockets.release()


def test_what_is_held_stays_so_whatever_else_its_daemon_comes_to_have(pipes: Path, root: Path) -> None:
    (directory := pipes / UUID).mkdir()
    (root / "elsewhere").mkdir()
    sockets = HeldSockets(directory, root / "links")
    with socket.socket(socket.AF_UNIX) as sent, socket.socket(socket.AF_UNIX) as own:
        own.bind(str(directory / "control"))
        own.listen()
        sockets.find([os.getpid()])
        (directory / "control").rename(directory / "mine")
        sent.bind(str(directory / "control"))
        sent.listen()
        assert sent.fileno() < own.fileno()
        assert sockets.find([os.getpid()])
    assert (directory / "control").stat().st_ino == (directory / "mine").stat().st_ino
    sockets.release()


def test_a_socket_that_is_made_anew_is_held_although_a_client_of_the_first_is_connected_still(
    pipes: Path, root: Path
) -> None:
    (control := pipes / UUID / "control").parent.mkdir()
    sockets = HeldSockets(pipes / UUID, root / "links")
    with socket.socket(socket.AF_UNIX) as client, ExitStack() as held:
        with socket.socket(socket.AF_UNIX) as first:
            first.bind(str(control))
            first.listen()
            sockets.find([os.getpid()])
            client.connect(str(control))
            held.enter_context(first.accept()[0])
        control.unlink()
        second = held.enter_context(socket.socket(socket.AF_UNIX))
        second.bind(str(control))
        second.listen()
        assert sockets.lost() == ["control"]
        assert not sockets.find([os.getpid()])
        assert sockets.lost() == []
    sockets.release()
