"""Commands reach no daemon of another GPU, whatever link a tenant puts in the place of a socket of its GPU's."""

from pathlib import Path

import pytest

from plugin.errors import ControlError
from plugin.mps.daemon import Daemon
from plugin.mps.place import Place
from plugin.mps.seen import Answered, Unreachable
from tests.plugin.mps.bench import A, B, Bench, Start, ready_in_a_container
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.standin import StandIn

OTHER = "GPU-other"


def started(place: Place, uuid: str) -> Daemon:
    daemon = Daemon(uuid, place, QUICK)
    daemon.start()
    return daemon


def link(socket: Path, to: str) -> None:
    socket.with_name("planted").symlink_to(to)
    socket.with_name("planted").replace(socket)


@pytest.mark.parametrize("name", ["control", "control_privileged"])
@pytest.mark.parametrize("where", [f"../{OTHER}", "{pipes}/" + OTHER, "/proc/self/root{pipes}/" + OTHER])
def test_it_is_a_fault_of_its_gpu_alone_and_a_start_ends_it(
    place: Place, standin: StandIn, pipes: Path, where: str, name: str
) -> None:
    daemon, other = started(place, UUID), started(place, OTHER)
    link(pipes / UUID / name, f"{where.format(pipes=pipes)}/{name}")
    standin.forget()
    seen = daemon.look()
    assert isinstance(seen, Unreachable)
    assert f"{UUID}/{name}: expected a socket of this GPU's MPS daemon, got a link that a tenant made" in seen.why
    daemon.control.ask("set_default_active_thread_percentage 100")  # by the sockets that are held
    assert standin.commands(gpu=UUID)[-1] == "set_default_active_thread_percentage 100"
    daemon.control.lead_to(None)
    with pytest.raises(ControlError, match="got a link"):
        daemon.control.ask("set_default_active_thread_percentage 100")
    daemon.start()
    assert standin.commands(gpu=OTHER) == []
    assert (daemon.look(), other.look()) == (Answered({}), Answered({}))


@needs_mounts
def test_none_is_followed_that_is_planted_between_the_look_and_the_command(bench: Bench, start: Start) -> None:
    ready_in_a_container(bench, start)
    bench.standin.begins_with(f"""
socket = os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/control"
if socket.endswith("{A}/control"):
    os.unlink(socket)
    os.symlink("../{B}/control", socket)
    reads, writes = os.pipe()
    os.write(writes, b"quit")
    os.close(writes)
    os.dup2(reads, 0)
""")
    bench.is_now("failed", A, why="got a link that a tenant made")
    bench.is_now("ready", B)
    assert "quit" not in bench.standin.commands(gpu=B)
