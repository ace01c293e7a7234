"""
The ceiling that a daemon was told, held against whoever changes it.

A program that is root in its container can write to the daemon's socket, and raise the ceiling, or lower it for its
neighbours.
"""

import logging
import re

from plugin.boot_clock import boot_seconds
from plugin.errors import ControlError
from plugin.mps.answers import excerpt, percentage
from plugin.mps.ceiling import Ceiling, commands
from plugin.mps.control import Control
from plugin.mps.timing import Timing

_log = logging.getLogger(__name__)


class HeldLimits:
    """Tells one daemon its ceiling, and now and then looks whether that still holds."""

    def __init__(self, gpu_uuid: str, control: Control, timing: Timing) -> None:
        self._gpu_uuid = gpu_uuid
        self._control = control
        self._timing = timing
        self._told: dict[str, tuple[str, str]] = {}  # by question: the command, and the answer after it
        self._unchecked: set[str] = set()  # questions of which the answer may have changed
        self._check_due_seconds = 0.0
        self._failure = ""

    def forget(self) -> None:
        """Take note of a new daemon, which was told nothing yet."""
        self._told.clear()

    def hold(self, ceiling: Ceiling, servers: tuple[int, ...], *, at_most_seconds: float) -> None:
        """
        Tell the daemon what it does not know, and again what was changed. A failure is logged, and tried again.

        After *at_most_seconds* no more is begun: the next call goes on, and a slow daemon is looked at meanwhile.
        """
        begun_seconds = boot_seconds()
        wanted = commands(ceiling, self._gpu_uuid, servers)
        self._told = {question: told for question, told in self._told.items() if question in wanted}
        if begun_seconds >= self._check_due_seconds:
            self._unchecked = set(self._told)
            self._check_due_seconds = begun_seconds + self._timing.limits
        try:
            for question, command in wanted.items():
                if boot_seconds() - begun_seconds > at_most_seconds:
                    return
                self._hold_one(question, command)
        except ControlError as error:
            if str(error) != self._failure:
                _log.warning("MPS limits not set", extra={"gpu": self._gpu_uuid, "reason": str(error)})
            self._failure = str(error)
            return
        self._failure = ""

    def _hold_one(self, question: str, command: str) -> None:
        told, expected = self._told.get(question, ("", ""))
        if told == command:
            if question not in self._unchecked:
                return
            answer = self._control.ask(question)
            self._unchecked.discard(question)
            if answer == expected:
                return
            del self._told[question]  # even if it cannot be told just now
            _log.warning(
                "somebody changed an MPS limit: set again",
                extra={
                    "gpu": self._gpu_uuid,
                    "question": question,
                    "expected": expected.strip(),
                    "got": excerpt(answer),
                },
            )
        self._control.ask(command)
        answer = self._control.ask(question)
        self._told[question] = (command, answer)
        _warn_if_not_kept(self._gpu_uuid, command, answer)


def _warn_if_not_kept(gpu_uuid: str, command: str, answer: str) -> None:
    """Compare what can be compared: a percentage; how a daemon writes memory is its own affair, if there is some."""
    if "active_thread_percentage" in command:
        kept = percentage(answer) == float(command.rsplit(maxsplit=1)[-1])
    else:
        kept = re.search(r"[1-9]", answer.replace(gpu_uuid, "")) is not None
    if not kept:
        _log.warning("MPS limit not kept", extra={"gpu": gpu_uuid, "command": command, "answer": excerpt(answer)})
