"""Programs that have asked and get no answer in time: each waits on, and nobody asks the same beside it."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugin.errors import ControlError, NotAskedError
from plugin.gpus.gpu import Gpu
from plugin.mps.control import Control
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.place import Place
from plugin.mps.seen import NoAnswer
from plugin.mps.unanswered import Unanswered
from plugin.pod_resources.tenancy import Tenancy
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.supervised import is_now, running
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until

# It notes that it was started, and answers once there is the file that it waits for.
_PROGRAM = """\
#!{python} -ISs
import os, sys, time
command = sys.stdin.read().strip() or "start"
with open({root!r} + "/started", "a") as file:
    file.write(command + "\\n")
while not os.path.exists({root!r} + "/" + command):
    time.sleep(0.01)
print("answer")
"""


class Asked:
    """A program that is asked with little time."""

    def __init__(self, root: Path, *, patience_seconds: float) -> None:
        self._root = root
        path = root / "control"
        path.write_text(_PROGRAM.format(python=sys.executable, root=str(root)))
        path.chmod(0o755)
        self.control = Control(
            str(path), {"CUDA_MPS_PIPE_DIRECTORY": "/p"}, timeout_seconds=0.5, patience_seconds=patience_seconds
        )

    def has_no_answer(self, command: str) -> None:
        with pytest.raises(ControlError, match=rf"^{command}: no answer within "):
            self.control.ask(command)

    def answers(self, *commands: str) -> None:
        for command in commands:
            (self._root / command).touch()

    def started(self) -> list[str]:
        return (self._root / "started").read_text().split()


def test_who_asks_the_same_waits_for_the_program_that_is_left_and_asks_anew_after_it(root: Path) -> None:
    asked = Asked(root, patience_seconds=600.0)
    asked.has_no_answer("a")
    wait_until((root / "started").exists)
    for _ in range(3):
        asked.has_no_answer("a")
    assert asked.started() == ["a"]
    asked.answers("a")
    with asked.control.patient(60.0, lambda: True):
        assert asked.control.ask("a") == "answer\n"
    assert asked.started() == ["a", "a"]
    assert asked.control.waiting == frozenset()


def test_one_that_has_had_its_time_is_ended_and_another_one_asks_with_time_of_its_own(root: Path) -> None:
    asked = Asked(root, patience_seconds=1.0)
    asked.has_no_answer("a")
    (first,) = asked.control.waiting
    with asked.control.patient(2.0, lambda: True):
        asked.has_no_answer("a")
    (second,) = asked.control.waiting
    assert first != second
    assert not Path(f"/proc/{first}").exists()
    asked.control.give_up()


def test_another_question_is_not_kept_waiting_and_ends_those_that_have_had_their_time(root: Path) -> None:
    asked = Asked(root, patience_seconds=1.5)
    asked.has_no_answer("a")
    asked.answers("b")
    with asked.control.patient(60.0, lambda: True):
        assert asked.control.ask("b") == "answer\n"
        wait_until(lambda: asked.control.ask("b") == "answer\n" and not asked.control.waiting)


def test_what_would_be_set_to_another_value_later_is_ended_before_that_is_set(root: Path) -> None:
    asked = Asked(root, patience_seconds=600.0)
    for command in ("set_a 1 50", "set_a 2 50", "get_a 1"):
        asked.has_no_answer(command)
    first, *others = sorted(asked.control.waiting)
    asked.answers("set_a 1 20")
    with asked.control.patient(60.0, lambda: True):
        assert asked.control.ask("set_a 1 20") == "answer\n"
    assert asked.control.waiting == {*others}
    assert not Path(f"/proc/{first}").exists()
    asked.control.give_up()


def test_one_that_the_daemon_itself_waits_for_is_ended_whoever_waits_for_its_answer(root: Path) -> None:
    asked = Asked(root, patience_seconds=600.0)
    asked.has_no_answer("a")
    (silent,) = asked.control.waiting
    asked.control.frees = lambda group: group == silent
    asked.has_no_answer("b")
    (other,) = asked.control.waiting
    assert other != silent
    asked.control.frees = lambda _: True
    with asked.control.patient(600.0, lambda: True):
        for what in "bc":  # one that waits already, and one that does not
            with pytest.raises(NotAskedError, match="cannot be run: it connects to the daemon, and says nothing"):
                asked.control.ask(what)
    asked.control.frees = lambda _: False
    asked.answers("a", "b", "c")
    with asked.control.patient(60.0, lambda: True):
        assert [asked.control.ask(what) for what in "abc"] == ["answer\n"] * 3
    assert asked.control.waiting == frozenset()


def test_who_asks_by_other_sockets_waits_for_none_that_asks_by_the_earlier_ones(root: Path) -> None:
    asked = Asked(root, patience_seconds=600.0)
    asked.has_no_answer("a")
    asked.control.lead_to(None)
    assert asked.control.waiting
    asked.control.lead_to(root)
    assert asked.control.waiting == frozenset()


def test_one_that_cannot_be_waited_for_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[subprocess.Popen[bytes]] = []
    started = Control._started

    def start(*given: Any) -> subprocess.Popen[bytes]:
        made.append(started(*given))
        return made[-1]

    def full(_: int) -> int:
        raise OSError(errno.ENFILE, "Too many open files in system")

    monkeypatch.setattr(Control, "_started", start)
    monkeypatch.setattr(os, "pidfd_open", full)
    with pytest.raises(NotAskedError, match="Too many open files"):
        Asked(root, patience_seconds=600.0).control.ask("a")
    assert [one.poll() is None for one in made] == [False]


def test_who_is_told_to_end_waits_for_none_that_is_left(root: Path) -> None:
    asked = Asked(root, patience_seconds=600.0)
    asked.has_no_answer("a")
    with asked.control.patient(600.0, lambda: False):
        asked.has_no_answer("a")
    (left,) = asked.control.waiting
    asked.control.give_up()
    assert asked.control.waiting == frozenset()
    assert not Path(f"/proc/{left}").exists()


@pytest.mark.parametrize("command", ["start", "quit"])
def test_what_nobody_waits_for_again_is_ended_at_once(root: Path, command: str) -> None:
    asked = Asked(root, patience_seconds=600.0)
    with pytest.raises(ControlError, match="no answer within"):
        asked.control.start([], timeout_seconds=0.5) if command == "start" else asked.control.ask(command)
    assert asked.control.waiting == frozenset()


class _Hanging(subprocess.Popen[bytes]):
    """A process in a driver call that does not return, which no signal ends."""

    returns = False

    def poll(self) -> int | None:
        return super().poll() if self.returns else None

    def wait(self, timeout: float | None = None) -> int:
        if not self.returns:
            raise subprocess.TimeoutExpired("control", timeout or 0)
        return super().wait(timeout)


def test_while_a_kill_has_not_ended_one_no_other_is_started_and_the_daemon_is_not_to_blame() -> None:
    unanswered = Unanswered("control")
    hanging = _Hanging(["sleep", "600"], start_new_session=True)
    unanswered.add("a", hanging, until_seconds=0.0)
    for what in "ab":
        with pytest.raises(NotAskedError, match=rf"^control: cannot be run: .* {hanging.pid}, cannot be killed"):
            unanswered.find(what)
    assert unanswered.pids == {hanging.pid}
    hanging.returns = True
    hanging.wait()
    assert unanswered.find("a") is None
    assert unanswered.pids == frozenset()


def test_one_by_another_name_that_waits_is_not_taken_for_the_daemon(
    place: Place, root: Path, standin: StandIn, pipes: Path
) -> None:
    named = root / "by-another-name"
    named.write_text(f'#!/bin/sh\n"{place.program}" "$@"\nexit $?\n')
    named.chmod(0o755)
    daemon = Daemon(UUID, replace(place, program=str(named)), replace(QUICK, answer=0.5))
    daemon.start()
    standin.behave(hang=["get_server_list"])
    for _ in range(2):
        assert isinstance(daemon.look(), NoAnswer)
    assert daemon.control.waiting
    daemon._holders()
    assert daemon.pids == tuple(one.pid for one in alive(pipes))
    daemon.stop()


def test_one_that_answers_within_its_time_lives_on_and_is_not_kept_from_it_by_earlier_questions(
    gpu: Gpu, root: Path, context: SupervisorContext, standin: StandIn
) -> None:
    timing = replace(QUICK, answer=0.3, patience=5.0, quit=0.1, kill=0.5)
    tenancy = Tenancy(root / "kubelet", lambda: ["gpu-share.dev/vgpu"])
    supervisor = DaemonSupervisor(gpu, replace(context, timing=timing, tenancy=tenancy))
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=2)), running(supervisor):
        is_now(supervisor, "ready")
        standin.behave(slow=1.5)
        is_now(supervisor, "failed", "no answer within")
        wait_until(lambda: "it answers, but slower than it should" in supervisor.report.why, timeout_seconds=60)
        standin.behave()
        is_now(supervisor, "ready")
    assert len(standin.starts()) == 1
