"""A tenant who puts a socket of his own in the place of a daemon's: nobody takes it for the daemon, which lives on."""

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from plugin.errors import MpsError
from plugin.mps.control import Control
from plugin.mps.daemon import Daemon
from plugin.mps.place import Place
from plugin.mps.seen import Answered, Unreachable
from tests.plugin.mps.bench import A, Bench, Start
from tests.plugin.mps.conftest import QUICK, UUID, names
from tests.plugin.mps.kept_socket import kept_socket
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.test_process_removed import pids

ANOTHER = "control: somebody put another socket in the place of that of the daemon"


@contextmanager
def replaced(path: Path, *, listens: bool = True) -> Iterator[socket.socket]:
    """Put a socket in the place of another; nobody answers by it."""
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(new := path.with_name("planted")))
        if listens:
            planted.listen(64)
        new.replace(path)
        yield planted


@pytest.mark.parametrize("listens", [True, False])
def test_a_daemon_that_is_in_use_lives_on_and_keeps_its_ceiling(bench: Bench, start: Start, *, listens: bool) -> None:
    with kept_socket(bench, start) as kept:
        served = pids(bench)
        with replaced(kept.control, listens=listens):
            bench.is_now("failed", A, why=f"{ANOTHER}; programs that run go on")
            kept.raises_the_ceiling()
            kept.sees_it_set_again()
            time.sleep(2)  # of twenty looks
            assert pids(bench) == served


@pytest.mark.parametrize("name", ["control", "control_privileged"])
def test_whoever_answers_in_its_place_is_not_asked(place: Place, standin: StandIn, pipes: Path, name: str) -> None:
    daemon, other = Daemon(UUID, place, QUICK), Daemon("GPU-other", place, QUICK)
    daemon.start()
    other.start()
    link = pipes / UUID / "link"
    os.link(pipes / "GPU-other" / "control", link)
    link.replace(pipes / UUID / name)
    standin.forget()
    seen = daemon.look()
    assert isinstance(seen, Unreachable)
    assert f"{name}: somebody put another socket" in seen.why
    daemon.control.ask("get_default_active_thread_percentage")
    assert (standin.commands(gpu="GPU-other"), other.look()) == ([], Answered({}))
    assert standin.commands(gpu=UUID)[-1] == "get_default_active_thread_percentage"


def test_one_is_missed_although_the_program_asks_by_the_other(daemon: Daemon, pipes: Path) -> None:
    assert daemon.look() == Answered({})
    (pipes / UUID / "control_privileged").unlink()
    seen = daemon.look()
    assert isinstance(seen, Unreachable)
    assert "control_privileged: somebody removed the socket of the daemon" in seen.why


def test_a_daemon_whose_socket_a_tenant_closed_to_other_users_is_open_to_them_again(
    daemon: Daemon, pipes: Path
) -> None:
    (control := pipes / UUID / "control").chmod(0o666)
    assert (daemon.look(), daemon.was_moved) == (Answered({}), False)
    control.chmod(0o600)
    assert (daemon.look(), daemon.was_moved) == (Answered({}), True)
    assert control.stat().st_mode & 0o777 == 0o666


class Raced(Control):
    """Has a tenant put a socket in the place of the daemon's as soon as that is there."""

    def __init__(self, place: Place, directory: Path, *, keeps: bool) -> None:
        environment = {
            "CUDA_VISIBLE_DEVICES": UUID,
            "CUDA_MPS_PIPE_DIRECTORY": str(directory),
            "CUDA_MPS_LOG_DIRECTORY": str(place.log_directory / UUID),
        }
        super().__init__(place.program, environment, timeout_seconds=1.0, patience_seconds=60.0)
        self._control = directory / "control"
        self._keeps = keeps

    def start(self, flags: Sequence[str], *, timeout_seconds: float) -> None:
        super().start(flags, timeout_seconds=timeout_seconds)
        if self._keeps:
            os.link(self._control, self._control.with_name("mine"))
        with replaced(self._control):
            pass


def test_a_socket_that_is_replaced_as_soon_as_its_daemon_is_there_has_its_name_again(
    place: Place, standin: StandIn, pipes: Path
) -> None:
    daemon = Daemon(UUID, place, QUICK)
    daemon.control = Raced(place, pipes / UUID, keeps=True)
    daemon.start()
    assert (pipes / UUID / "control").samefile(pipes / UUID / "mine")
    assert daemon.look() == Answered({})
    assert "get_server_list" in standin.commands(gpu=UUID)


def test_a_daemon_whose_socket_is_lost_as_soon_as_it_is_there_does_not_stay(place: Place, pipes: Path) -> None:
    daemon = Daemon(UUID, place, QUICK)
    daemon.control = Raced(place, pipes / UUID, keeps=False)
    with pytest.raises(MpsError, match=ANOTHER):
        daemon.start()
    assert (list(alive(pipes)), names(pipes / UUID)) == ([], [])
