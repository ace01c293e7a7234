"""
The most that one client of a GPU's MPS daemon may take: the ceiling, set in the daemon and checked there.

A container's own limit is in its environment, where its program can remove it. The daemon's is the same for all of its
clients, so it is the largest share that anyone on the GPU may have. A program that is root in its container can write
to the daemon's socket and raise the ceiling, or lower it for its neighbours, so it is looked at again and again.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from plugin.errors import ControlError
from plugin.gpus.gpu import Gpu
from plugin.mps.answers import ServerState, excerpt, keeps_memory_limit, percentage, server_pids
from plugin.mps.control import Control
from plugin.mps.restart_policy import INITIALIZING_SECONDS
from plugin.mps.seen import Fault, not_done
from plugin.mps.timing import Timing
from plugin.shares.allocation import Allocation
from plugin.shares.limits import MPS_SERVER_MIB, ONLY_GPU, memory_mib, thread_percentage
from plugin.state_files import boot_seconds

_log = logging.getLogger(__name__)

_SETTLED_SECONDS = 2 * INITIALIZING_SECONDS  # after which no server starts any more by a default that was higher


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What the daemon lets each client have at most."""

    thread_percentage: int
    memory_mib: int


def ceiling_of(gpu: Gpu, share: Fraction) -> Ceiling:
    """Say what a share of a GPU is: exactly what a container that holds it is told itself, of whatever vGPUs."""
    allocation = Allocation(gpus=(gpu,), vgpus=share.numerator, vgpus_per_gpu=share.denominator)
    return Ceiling(
        thread_percentage=thread_percentage(allocation),
        memory_mib=memory_mib(allocation, kept_mib=MPS_SERVER_MIB),
    )


def next_ceiling(before: Fraction, *, allowed: Fraction, held: Fraction | None, least: Fraction) -> Fraction:
    """
    Say which share of the GPU the next ceiling is.

    *allowed* is what policies allow one container, *held* what the largest tenant has on this GPU, None where that is
    not known: it may then be anything up to the ceiling *before*, so that may rise only. *least* is one vGPU.
    """
    return min(Fraction(1), max(least, allowed, before if held is None else held))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonLimit:
    """One limit of a daemon."""

    most: int  # percent or MiB
    command: str  # that sets it
    question: str  # that it is checked by
    is_kept: Callable[[str], bool]  # by the answer to the question
    is_rounded: bool  # in answers, so that one that is as before does not prove that nothing was changed
    server: int | None  # PID; None is the default of servers that are started later


def daemon_limits(ceiling: Ceiling, servers: Iterable[int]) -> Iterator[DaemonLimit]:
    """
    List the limits of a daemon.

    The defaults reach servers that are started later, so each running one is set by itself; its clients of
    now keep what they came with.
    """
    percent, mib = ceiling.thread_percentage, ceiling.memory_mib
    for server in (None, *servers):
        kind, pid = ("default_", "") if server is None else ("", f" {server}")
        yield DaemonLimit(
            most=percent,
            command=f"set_{kind}active_thread_percentage{pid} {percent}",
            question=f"get_{kind}active_thread_percentage{pid}",
            is_kept=lambda answer: percentage(answer) == float(percent),
            is_rounded=False,
            server=server,
        )
        yield DaemonLimit(
            most=mib,
            command=f"set_{kind}device_pinned_mem_limit{pid} {ONLY_GPU} {mib}M",
            question=f"get_{kind}device_pinned_mem_limit{pid} {ONLY_GPU}",
            is_kept=lambda answer: keeps_memory_limit(answer, mib),
            is_rounded=True,
            server=server,
        )


class ClientLimits:
    """Tells one daemon its ceiling, and now and then looks whether that still holds."""

    def __init__(self, gpu_uuid: str, control: Control, timing: Timing) -> None:
        self._gpu_uuid = gpu_uuid
        self._control = control
        self._timing = timing
        self._in_force: dict[str, tuple[str, str]] = {}  # by question: the command, and the answer; last checked last
        self._most: dict[str, float] = {}  # by question: the highest that may be in force, by all that was said
        self._fell_seconds = -inf  # when a default did last that a server may have been started by
        self._turns = 0  # of this daemon; the first is before it has a server
        self._unchecked: set[str] = set()  # questions of which the answer may have changed
        self._check_due_seconds = 0.0

    def forget(self) -> None:
        """Forget what was set: the daemon is a new one, without a server."""
        self._in_force.clear()
        self._most.clear()
        self._turns = 0

    def doubt(self) -> None:
        """Look at the next call whether all still holds."""
        self._check_due_seconds = 0.0

    def hold(self, ceiling: Ceiling, servers: Mapping[int, ServerState], *, at_most_seconds: float) -> Fault:
        """
        Tell the daemon what it does not know, and again what was changed, of all its *servers* those that are active.

        After *at_most_seconds* no more is begun: the next call goes on, and a slow daemon is looked at meanwhile.

        Returns:
            Why a client may take more than it should.
        """
        begun_seconds = boot_seconds()
        self._turns += 1
        there = {one.question: one for one in daemon_limits(ceiling, servers)}
        wanted = {question: one for question, one in there.items() if _can_be_told(one, servers)}
        self._keep_known(wanted, there, begun_seconds)
        if begun_seconds >= self._check_due_seconds:
            self._unchecked = set(self._in_force)
            self._check_due_seconds = begun_seconds + self._timing.limits
        for limit in self._in_turn(wanted):
            if boot_seconds() - begun_seconds > at_most_seconds:
                break
            if (fault := self._fault_of(limit)).why:
                return fault
        if any(map(self._must_fall, wanted.values())):
            return Fault("the daemon is slow, and was not told all of its limits yet")
        return Fault()

    def _keep_known(self, wanted: Mapping[str, DaemonLimit], there: Iterable[str], now_seconds: float) -> None:
        """
        Keep what is known of the limits that are *wanted*, and take it up that a new server has the defaults.

        Of those that are *there* and not wanted, for now, nothing is known once they are.
        """
        self._in_force = {question: pair for question, pair in self._in_force.items() if question in wanted}
        self._most = {question: most for question, most in self._most.items() if question in wanted}
        are_in_force = not any(self._must_fall(one) for one in wanted.values() if one.server is None)
        is_settled = are_in_force and now_seconds - self._fell_seconds > _SETTLED_SECONDS
        for one in wanted.values():  # as each is seen first: one that was to be told stays so
            self._most.setdefault(one.question, one.most if is_settled else inf)
        self._most = dict.fromkeys(there, inf) | self._most

    def _in_turn(self, wanted: Mapping[str, DaemonLimit]) -> list[DaemonLimit]:
        """
        List first what must fall, of servers that there are before those to come; then what may rise.

        What holds is last, so that its check keeps nobody from his limit: of that what was checked longest ago first.
        """
        falling = sorted(filter(self._must_fall, wanted.values()), key=lambda one: one.server is None)
        holding = [wanted[question] for question in self._in_force if self._holds(wanted[question])]
        return [*falling, *(one for one in wanted.values() if one not in (*falling, *holding)), *holding]

    def _holds(self, limit: DaemonLimit) -> bool:
        return self._in_force.get(limit.question, ("", ""))[0] == limit.command

    def _must_fall(self, limit: DaemonLimit) -> bool:
        """Whether a client may take more than this; one who may take less than it is no danger to others."""
        return self._most.get(limit.question, inf) > limit.most

    def _fault_of(self, limit: DaemonLimit) -> Fault:
        try:
            fault = Fault(self._held(limit))
        except ControlError as error:
            fault = not_done("its limits cannot be set", error)
        if fault.why and not self._is_there(limit.server):  # it ended between two questions, and its limits with it
            self._most[limit.question] = 0
            return Fault()
        return fault

    def _is_there(self, server: int | None) -> bool:
        try:
            return server is None or server in server_pids(self._control.ask("get_server_list"))
        except ControlError:
            return True

    def _held(self, limit: DaemonLimit) -> str:
        """Set the limit if it is not in force; why it is not kept, or nothing."""
        if self._holds(limit):
            if limit.question not in self._unchecked or self._is_unchanged(limit):
                return ""
            self._most[limit.question] = inf
        before = self._most.get(limit.question, inf)
        # Now: where no answer comes, the earlier limit may be in force or this one.
        self._in_force.pop(limit.question, None)
        self._most[limit.question] = max(before, limit.most)
        self._control.ask(limit.command)
        answer = self._control.ask(limit.question)
        if not limit.is_kept(answer):
            return f"it does not keep its limits: {limit.question} answers {excerpt(answer)} after {limit.command}"
        self._in_force[limit.question] = (limit.command, answer)
        self._unchecked.discard(limit.question)
        self._most[limit.question] = limit.most
        if limit.server is None and before > limit.most and self._turns > 1:
            self._fell_seconds = boot_seconds()
        return ""

    def _is_unchanged(self, limit: DaemonLimit) -> bool:
        """Ask whether a limit that was in force still is, and set it again where the same answer proves little."""
        answer = self._control.ask(limit.question)
        self._unchecked.discard(limit.question)
        command, expected = self._in_force.pop(limit.question)
        if answer == expected:
            if limit.is_rounded:
                self._control.ask(command)
            self._in_force[limit.question] = (command, expected)
            return True
        said = {"question": limit.question, "expected": expected.strip(), "got": excerpt(answer)}
        _log.warning("an MPS limit was changed: set again", extra={"gpu": self._gpu_uuid, **said})
        return False


def _can_be_told(limit: DaemonLimit, servers: Mapping[int, ServerState]) -> bool:
    return limit.server is None or servers[limit.server] == "ACTIVE"
