"""
The most that one client of a GPU's MPS daemon may take: the ceiling, set in the daemon and checked there.

A container's own limit is in its environment, where its program can remove it. The daemon's is the same for all of its
clients, so it is the largest share that anyone on the GPU may have. A program that is root in its container can write
to the daemon's socket and raise the ceiling, or lower it for its neighbours, so it is looked at again and again.
"""

import logging
import re
from dataclasses import dataclass

from plugin.errors import ControlError
from plugin.gpus.gpu import Gpu
from plugin.mps.control import Control, excerpt, percentage
from plugin.mps.daemon import Timing
from plugin.shares.allocation import Allocation
from plugin.shares.limits import memory_mib, thread_percentage
from plugin.state_files import boot_seconds

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What the daemon lets each client have at most."""

    thread_percentage: int
    memory_mib: int


def ceiling_of(gpu: Gpu, *, vgpus: int, vgpus_per_gpu: int) -> Ceiling:
    """Say what *vgpus* of a GPU are: exactly what a container that holds so many is told itself."""
    allocation = Allocation(gpus=(gpu,), vgpus=vgpus, vgpus_per_gpu=vgpus_per_gpu)
    return Ceiling(
        thread_percentage=thread_percentage(allocation),
        memory_mib=memory_mib(allocation),
    )


def next_vgpus(before: int | None, *, allowed: int, held: int | None, vgpus_per_gpu: int) -> int:
    """
    Count the vGPUs of the next ceiling.

    *before* is None at the start. *allowed* is what policies allow one container, *held* what the largest tenant has on
    this GPU, None where that is not known: it may then be anything up to the ceiling before, so that may rise only.
    """
    if held is None:
        held = vgpus_per_gpu if before is None else before
    return min(vgpus_per_gpu, max(1, allowed, held))


def commands(ceiling: Ceiling, gpu_uuid: str, servers: tuple[int, ...]) -> dict[str, str]:
    """
    Say by which commands a daemon is set, and by which questions it is checked: question to command.

    The defaults reach servers that are started later, so each running one is set by itself; its clients of
    now keep what they came with.
    """
    percent, memory = str(ceiling.thread_percentage), f"{ceiling.memory_mib}M"
    made = {
        "get_default_active_thread_percentage": f"set_default_active_thread_percentage {percent}",
        f"get_default_device_pinned_mem_limit {gpu_uuid}": f"set_default_device_pinned_mem_limit {gpu_uuid} {memory}",
    }
    for pid in servers:
        made[f"get_active_thread_percentage {pid}"] = f"set_active_thread_percentage {pid} {percent}"
        made[f"get_device_pinned_mem_limit {pid} {gpu_uuid}"] = f"set_device_pinned_mem_limit {pid} {gpu_uuid} {memory}"
    return made


class ClientLimits:
    """Tells one daemon its ceiling, and now and then looks whether that still holds."""

    def __init__(self, gpu_uuid: str, control: Control, timing: Timing) -> None:
        self._gpu_uuid = gpu_uuid
        self._control = control
        self._timing = timing
        self._in_force: dict[str, tuple[str, str]] = {}  # by question: the command, and the answer after it
        self._unchecked: set[str] = set()  # questions of which the answer may have changed
        self._check_due_seconds = 0.0
        self._failure = ""

    def forget(self) -> None:
        """Forget what was set: the daemon is a new one."""
        self._in_force.clear()

    def hold(self, ceiling: Ceiling, servers: tuple[int, ...], *, at_most_seconds: float) -> None:
        """
        Tell the daemon what it does not know, and again what was changed. A failure is logged, and tried again.

        After *at_most_seconds* no more is begun: the next call goes on, and a slow daemon is looked at meanwhile.
        """
        begun_seconds = boot_seconds()
        wanted = commands(ceiling, self._gpu_uuid, servers)
        self._in_force = {question: pair for question, pair in self._in_force.items() if question in wanted}
        if begun_seconds >= self._check_due_seconds:
            self._unchecked = set(self._in_force)
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
        in_force, expected = self._in_force.get(question, ("", ""))
        if in_force == command:
            if question not in self._unchecked:
                return
            answer = self._control.ask(question)
            self._unchecked.discard(question)
            if answer == expected:
                return
            del self._in_force[question]  # even if it cannot be set just now
            _log.warning(
                "an MPS limit was changed: set again",
                extra={
                    "gpu": self._gpu_uuid,
                    "question": question,
                    "expected": expected.strip(),
                    "got": excerpt(answer),
                },
            )
        self._control.ask(command)
        answer = self._control.ask(question)
        self._in_force[question] = (command, answer)
        _warn_if_not_kept(self._gpu_uuid, command, answer)


def _warn_if_not_kept(gpu_uuid: str, command: str, answer: str) -> None:
    """Compare what can be compared: a percentage; how a daemon writes memory is its own affair, if there is some."""
    if "active_thread_percentage" in command:
        kept = percentage(answer) == float(command.rsplit(maxsplit=1)[-1])
    else:
        kept = re.search(r"[1-9]", answer.replace(gpu_uuid, "")) is not None
    if not kept:
        _log.warning("MPS limit not in force", extra={"gpu": gpu_uuid, "command": command, "answer": excerpt(answer)})
