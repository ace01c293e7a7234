import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from plugin.errors import ControlError, MpsError
from plugin.mps.control import Control
from plugin.mps.daemon import Daemon
from plugin.mps.place import Place
from plugin.mps.processes import holder
from plugin.mps.seen import Answered, Blocked, Gone, NoAnswer, Unread
from tests.plugin.mps.conftest import QUICK, UUID, names
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.waiting import wait_until

IMPATIENT = replace(QUICK, answer=0.3, quit=0.3, kill=0.5)


def roles(pipes: Path) -> list[str]:
    return sorted(one.role for one in alive(pipes))


@pytest.fixture
def daemon(place: Place) -> Daemon:
    return Daemon(UUID, place, QUICK)


def test_a_daemon_is_bound_to_its_gpu_and_has_nothing_else_in_its_environment(
    daemon: Daemon, standin: StandIn, root: Path, pipes: Path
) -> None:
    daemon.start()
    wait_until(lambda: bool(standin.starts()))
    (started,) = standin.starts()
    environment = started["environment"]
    for name in ("PATH", "LD_LIBRARY_PATH", "LC_CTYPE"):
        environment.pop(name, None)
    assert environment == {
        "CUDA_VISIBLE_DEVICES": UUID,
        "CUDA_MPS_PIPE_DIRECTORY": f"{pipes}/{UUID}",
        "CUDA_MPS_LOG_DIRECTORY": f"{root}/log/{UUID}",
        "CUDA_MPS_PROTOCOL_VERSION": "2",
    }
    assert (started["start"], started["umask"], started["blocked"]) == (["-d"], 0o022, [])
    assert (root / "log" / UUID / "control.log").exists()
    assert daemon.look() == Answered({})


def test_a_daemon_that_sees_other_gpus_than_its_own_is_none_and_ended_by_a_start(
    daemon: Daemon, place: Place, standin: StandIn, pipes: Path
) -> None:
    daemon.start()
    daemon.stop()
    for seen in (f"{UUID},GPU-other", "0", ""):
        (foreign := Daemon(UUID, place, QUICK)).control = Control(
            *(place.program, {**standin.starts()[0]["environment"], "CUDA_VISIBLE_DEVICES": seen}),
            timeout_seconds=5.0,
            patience_seconds=60.0,
        )
        foreign.control.start([], timeout_seconds=10.0)
        (left,) = alive(pipes)
        assert daemon.look() == Gone()
        daemon.start()
        (ours,) = alive(pipes)
        assert (ours.gpus, ours.pid == left.pid) == (UUID, False)
        daemon.stop()


def test_multi_user_is_a_flag_of_the_daemon(place: Place, standin: StandIn) -> None:
    Daemon(UUID, replace(place, multi_user=True), QUICK).start()
    wait_until(lambda: bool(standin.starts()))
    assert standin.starts()[0]["start"] == ["-d", "-M"]


def test_the_state_of_each_server_is_asked_for(daemon: Daemon, standin: StandIn) -> None:
    standin.behave(servers={"41": "ACTIVE", "42": "Server is in FAULT"})
    daemon.start()
    assert daemon.look() == Answered({41: "ACTIVE", 42: "FAULT"})


def test_a_server_that_ends_between_two_questions_is_no_fault(place: Place, standin: StandIn) -> None:
    class Fleeting(Daemon):
        """Lists a server that is gone when it is asked for its state."""

        def _server_pids(self) -> tuple[int, ...]:
            found = super()._server_pids()
            standin.behave(servers={})
            return found

    standin.behave(servers={"42": "ACTIVE"})
    daemon = Fleeting(UUID, place, QUICK)
    daemon.start()
    assert daemon.look() == Answered({})


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ({"hang": ["get_server_list"]}, NoAnswer),
        ({"servers": {"42": "ACTIVE"}, "hang": ["get_server_status"]}, NoAnswer),
        ({"lie": {"get_server_list": "all is well"}}, Unread),
        ({"servers": {"42": "splendid"}}, Unread),
        ({"flood": True}, Unread),
    ],
    ids=["list hangs", "status hangs", "list lies", "status lies", "flood"],
)
def test_silence_and_nonsense_are_told_with_their_reason(
    place: Place, standin: StandIn, behaviour: dict[str, object], kind: type[NoAnswer | Unread]
) -> None:
    daemon = Daemon(UUID, place, IMPATIENT)
    daemon.start()
    standin.behave(**behaviour)
    assert isinstance(seen := daemon.look(), kind)
    assert seen.why.startswith("get_server_")
    daemon.stop()


def test_a_daemon_that_cannot_be_asked_is_not_taken_for_one_that_does_not_answer(
    daemon: Daemon, standin: StandIn
) -> None:
    daemon.start()
    standin.program.chmod(0o644)  # as good as a node that has no more processes
    seen = daemon.look()
    assert isinstance(seen, Blocked)
    assert seen.why == f"{standin.program}: cannot be run: Permission denied"
    standin.program.chmod(0o755)
    assert daemon.look() == Answered({})


def test_a_daemon_that_dies_over_a_question_is_gone_whatever_its_pid_file_says(
    daemon: Daemon, standin: StandIn, pipes: Path
) -> None:
    daemon.start()
    standin.behave(die=["get_server_list"])
    assert daemon.look() == Gone()
    (pipes / UUID / "nvidia-cuda-mps-control.pid").write_text(str(os.getpid()))
    assert daemon.look() == Gone()


def test_a_start_that_fails_says_what_the_program_said_and_leaves_nothing(
    daemon: Daemon, standin: StandIn, pipes: Path
) -> None:
    standin.behave(start={"*": "no CUDA-capable device"})
    with pytest.raises(ControlError, match=r"-d: failed with 1: 'no CUDA-capable device'"):
        daemon.start()
    assert (roles(pipes), names(pipes / UUID)) == ([], [])
    assert daemon.look() == Gone()


def test_a_start_that_hangs_is_given_up_and_ended(place: Place, standin: StandIn, pipes: Path) -> None:
    standin.behave(start={"*": "hang"})
    with pytest.raises(ControlError, match=r"-d: no answer within 0\.4 s"):
        Daemon(UUID, place, replace(IMPATIENT, start=0.4)).start()
    assert roles(pipes) == []


def test_a_daemon_whose_start_is_given_up_does_not_stay(place: Place, standin: StandIn, pipes: Path) -> None:
    standin.behave(mute=True)
    with pytest.raises(ControlError, match=r"-d: no answer within 1 s"):
        Daemon(UUID, place, replace(QUICK, start=1.0)).start()
    assert len(standin.starts()) == 1
    assert (roles(pipes), names(pipes / UUID)) == ([], [])


def test_a_daemon_that_is_told_to_quit_leaves_nothing(daemon: Daemon, standin: StandIn, pipes: Path) -> None:
    daemon.start()
    daemon.stop()
    assert standin.commands() == ["quit"]
    assert (roles(pipes), names(pipes / UUID)) == ([], [])


@pytest.mark.parametrize(
    "behaviour",
    [
        {"litter": True},
        {"without_events": ["quit"]},
        {"hang": ["quit"]},
        {"without_events": ["quit", "SIGTERM"]},
        {"orphan": True},
    ],
    ids=["litters", "ignores quit", "hangs", "ignores SIGTERM", "leaves a server"],
)
def test_whatever_it_does_it_is_gone_in_the_end_with_its_servers_and_files(
    place: Place, standin: StandIn, pipes: Path, behaviour: dict[str, object]
) -> None:
    standin.behave(**behaviour)
    daemon = Daemon(UUID, place, IMPATIENT)
    daemon.start()
    wait_until(lambda: bool(standin.starts()))
    daemon.stop()
    assert (roles(pipes), names(pipes / UUID)) == ([], [])


def test_a_start_ends_what_an_earlier_run_left(place: Place, standin: StandIn, pipes: Path) -> None:
    standin.behave(orphan=True, litter=True)
    Daemon(UUID, place, QUICK).start()
    wait_until(lambda: roles(pipes) == ["daemon", "server"])
    (left,) = (one for one in alive(pipes) if one.role == "daemon")
    os.kill(left.pid, signal.SIGKILL)  # its server and its files stay
    wait_until(lambda: roles(pipes) == ["server"])
    standin.behave()
    after = Daemon(UUID, place, QUICK)
    assert after.look() == Gone()
    after.start()
    assert roles(pipes) == ["daemon"]
    assert after.look() == Answered({})


def test_nobody_but_the_processes_of_the_gpu_is_ended(place: Place, pipes: Path) -> None:
    other = Daemon("GPU-other", place, QUICK)
    other.start()
    daemon = Daemon(UUID, place, QUICK)
    daemon.start()
    daemon.stop()
    assert {one.directory for one in alive(pipes)} == {f"{pipes}/GPU-other"}
    assert other.look() == Answered({})


def test_processes_that_survive_everything_are_named(
    place: Place, standin: StandIn, pipes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = Daemon(UUID, place, IMPATIENT)
    standin.behave(without_events=["quit", "SIGTERM"])
    daemon.start()
    (found,) = alive(pipes)
    # As if it hung in the driver: signals do not reach it.
    monkeypatch.setattr("plugin.mps.daemon.send", lambda *_, **__: None)
    with pytest.raises(MpsError, match=f"the MPS processes {found.pid} cannot be killed"):
        daemon.stop()
    assert holder(found.pid) == found


def test_a_directory_that_a_tenant_closed_to_its_neighbours_is_opened_again(daemon: Daemon, pipes: Path) -> None:
    daemon.start()
    (pipes / UUID).chmod(0o700)
    assert daemon.look() == Answered({})
    assert (pipes / UUID).stat().st_mode & 0o777 == 0o755


def test_a_log_that_grew_too_large_begins_anew(daemon: Daemon, root: Path) -> None:
    daemon.start()
    log = root / "log" / UUID / "server.log"
    log.write_bytes(b"x" * (16 << 20))
    daemon.look()
    assert log.stat().st_size == 16 << 20
    with log.open("ab") as file:
        file.write(b"x" * 100_000)
    daemon.look()
    assert log.stat().st_size == 0
