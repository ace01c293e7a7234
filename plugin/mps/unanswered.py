"""
Programs that have asked a daemon, and wait for its answer when nobody here does any more.

A daemon serves one after the other, and nothing says that it forgets the question of a program that was killed. So none
is killed before it had its minute, and meanwhile nobody asks the same: a slow daemon would be kept from the next answer
by the earlier ones.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from plugin.errors import NotAskedError

_DEAD_WITHIN_SECONDS = 1.0
_SETTING = "set_"  # as such commands begin; their last word is the value


class Asker(NamedTuple):
    """One such program."""

    process: subprocess.Popen[bytes]
    until_seconds: float  # it may wait, by the clock `monotonic`

    @property
    def may_wait(self) -> bool:
        """Whether it has not waited for long enough yet."""
        return time.monotonic() < self.until_seconds


class Unanswered:
    """Those that ask one daemon, one for each question; for one thread."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._askers: dict[str, Asker] = {}  # by what they ask
        self._hanging: list[subprocess.Popen[bytes]] = []  # that a kill has not ended

    @property
    def pids(self) -> frozenset[int]:
        """Name their processes."""
        return frozenset(one.pid for one in (*self._hanging, *self.programs))

    @property
    def programs(self) -> tuple[subprocess.Popen[bytes], ...]:
        """List those that still may have an answer."""
        return tuple(asker.process for asker in self._askers.values())

    def find(self, what: str) -> Asker | None:
        """
        Find the one that asks the same; of all, those that have waited for long enough are ended.

        Raises:
            NotAskedError: If one cannot be ended: the next one would hang as well, and so on.
        """
        over = [key for key, one in self._askers.items() if one.process.poll() is not None or not one.may_wait]
        self.kill(self._askers[key].process for key in over)
        self._hanging = [one for one in self._hanging if one.poll() is None]
        if self._hanging:
            pids = ", ".join(str(one.pid) for one in self._hanging)
            raise NotAskedError(
                f"{self._program}: cannot be run: earlier ones, the processes {pids}, cannot be killed, they hang in "
                "the driver: reset the GPU, or reboot"
            )
        return self._askers.get(what)

    def end_overtaken(self, what: str) -> None:
        """End those that would set to another value what is set now: they may not have reached the daemon yet."""
        set_now, _, _ = what.rpartition(" ")
        over = [key for key in self._askers if key != what and key.rpartition(" ")[0] == set_now]
        if set_now.startswith(_SETTING):
            self.kill(self._askers[key].process for key in over)

    def add(self, what: str, process: subprocess.Popen[bytes], *, until_seconds: float) -> None:
        """Let a program wait until then."""
        self._askers[what] = Asker(process, until_seconds)

    def clear(self) -> None:
        """End all: what they ask is of no use any more."""
        self.kill(self.programs)

    def kill(self, processes: Iterable[subprocess.Popen[bytes]]) -> None:
        """End programs, with what they have started."""
        killed = list(processes)
        for one in killed:
            with suppress(ProcessLookupError):
                if one.poll() is None:
                    os.killpg(one.pid, signal.SIGKILL)
        for one in killed:
            try:
                one.wait(_DEAD_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:  # in a driver call that does not return
                self._hanging.append(one)
        self._askers = {what: one for what, one in self._askers.items() if one.process not in killed}
