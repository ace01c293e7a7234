"""
What to do about one MPS daemon: a rule from what was seen, and when, to the daemon's state and the next action.

Two things must be kept apart. A daemon that is not good is reported at the first sign, because a container that starts
without its daemon has the whole GPU or none. It is killed on evidence only, because that ends its tenants' contexts.

A daemon is good with an active server alone, whoever's it is: the compute mode gives the GPU to the first process, and
while there is no server that can be a program which does without MPS.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal, assert_never

from plugin.mps.answers import ServerState
from plugin.mps.seen import Answered, Blocked, Gone, NoAnswer, NotStarted, Seen, Unreachable, Unread
from plugin.mps.state import StateName

USELESS_BEFORE_KILL = 5  # looks in a row: half a minute, in which a daemon may be waiting for a slow driver
STEADY_SECONDS = 60.0  # of good answers, after which earlier failures are forgotten
INITIALIZING_SECONDS = 60.0  # that a server may take until it serves clients
LONGEST_PAUSE_SECONDS = 60.0  # before a start

STARTING_LOOK_SECONDS = 0.5  # between two looks, while a server starts
NOT_SERVING: Final[frozenset[StateName]] = frozenset({"failed", "fault"})
_NO_SERVER = "no MPS server holds the GPU, so a program could take it without MPS: one is being started"
_LEFT = "it is started anew once no container holds a share of the GPU: delete the pods that do if this lasts"
_UNREAD_LEFT = f"it may serve those who use it, so {_LEFT}"
_UNUSED = "and no container holds a share of the GPU, seen "

Action = Literal["wait", "start", "serve", "kill"]  # "serve": have it start a server


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStatus:
    """What is known of one daemon; times are in seconds of any clock that only goes forward."""

    state: StateName = "starting"
    why: str = "the daemon was not started yet"
    running: bool = False  # as far as is known
    unserved: bool = False  # there is no server, and why says so
    useless: int = 0  # looks in a row at which it did not answer, or was of no use to anybody
    in_vain: int = 0  # looks in a row at which it did not do what it was told, and was left alone
    failures: int = 0  # since it was last steady
    due_seconds: float = 0.0  # not started before, where it is not running
    good_since_seconds: float | None = None
    initializing_since_seconds: float | None = None

    def pause_seconds(self, now_seconds: float, *, longest: float) -> float:
        """Say how long to wait until the next look."""
        if self.running:
            return min(longest, STARTING_LOOK_SECONDS) if self.state == "starting" else longest
        return min(longest, max(0.0, self.due_seconds - now_seconds))


def is_last(status: DaemonStatus) -> bool:
    """Whether the next look is the fifth of those that find it useless: with what it takes, it may still do."""
    return USELESS_BEFORE_KILL - 1 in (status.useless, status.in_vain)


def step(status: DaemonStatus, seen: Seen, now_seconds: float) -> tuple[DaemonStatus, Action]:
    """Take in one look at the daemon; the action must be taken before the next look."""
    match seen:
        case Gone() if status.running:
            return _failed(status, "the daemon is gone", now_seconds), "wait"
        case Gone():
            return _not_running(status, now_seconds)
        case NotStarted(why):
            return _failed(status, why, now_seconds), "wait"
        case NoAnswer(why):
            return _useless(status, _not_good(status, "failed", why), now_seconds)
        case Unread(why, in_use=False) | Unreachable(why, in_use=False):
            return _useless(status, _not_good(status, "failed", why), now_seconds, counted="seen ")
        case Unread(why):
            return _left_alone(status, f"{why}; {_UNREAD_LEFT}")
        case Unreachable(why) | Blocked(why):
            return _left_alone(status, why)
        case Answered():
            return _answered(status, seen, now_seconds)
        case _:
            assert_never(seen)


def _left_alone(status: DaemonStatus, why: str) -> tuple[DaemonStatus, Action]:
    return replace(_not_good(status, "failed", why), running=True, useless=0), "wait"


def _not_running(status: DaemonStatus, now_seconds: float) -> tuple[DaemonStatus, Action]:
    if now_seconds < status.due_seconds:
        return status, "wait"
    return replace(status, state="starting", why="the daemon is being started", running=True), "start"


def _unserved(before: DaemonStatus, seen: Answered) -> tuple[DaemonStatus, Action]:
    """Start a server, and see by that whether the daemon is of use; why that fails stays known until one runs."""
    status = replace(before, running=True, useless=0 if seen.in_use else before.useless)
    if status.unserved:
        return status, "serve"
    state: StateName = "starting" if status.state == "starting" else "failed"
    return replace(_not_good(status, state, _NO_SERVER), unserved=True), "serve"


def _faulty(before: DaemonStatus, seen: Answered, now_seconds: float) -> tuple[DaemonStatus, Action]:
    """End a daemon only for what it does not do at all, and only where no container holds a share."""
    status = replace(_not_good(before, "failed", seen.fault), running=True, useless=0, unserved=not seen.servers)
    if not seen.in_vain:
        return status, "wait"
    if not seen.in_use:
        return _useless(before, status, now_seconds, counted=_UNUSED)
    why = f"{seen.fault}; {_UNREAD_LEFT if seen.servers else _LEFT}"
    return replace(status, why=why, in_vain=(before.in_vain + 1) % USELESS_BEFORE_KILL), "wait"


def _useless(
    before: DaemonStatus, status: DaemonStatus, now_seconds: float, *, counted: str = ""
) -> tuple[DaemonStatus, Action]:
    """Count a look at a daemon that was of no use, of which *status* says why."""
    looks = before.useless + 1
    if looks >= USELESS_BEFORE_KILL:
        return _failed(status, f"{status.why}, {counted}{looks} times in a row", now_seconds), "kill"
    return replace(status, running=True, useless=looks), "wait"


def _failed(status: DaemonStatus, why: str, now_seconds: float) -> DaemonStatus:
    status = replace(status, unserved=False)
    pause_seconds = min(LONGEST_PAUSE_SECONDS, 2.0 ** min(status.failures, 16))
    return replace(
        _not_good(status, "failed", f"{why}; the next start is after a pause of {pause_seconds:.0f} s"),
        running=False,
        useless=0,
        failures=status.failures + 1,
        due_seconds=now_seconds + pause_seconds,
    )


def _not_good(status: DaemonStatus, state: StateName, why: str) -> DaemonStatus:
    return replace(status, state=state, why=why, in_vain=0, good_since_seconds=None, initializing_since_seconds=None)


def _answered(before: DaemonStatus, seen: Answered, now_seconds: float) -> tuple[DaemonStatus, Action]:
    servers = seen.servers.values()
    if seen.fault and "FAULT" not in servers:
        return _faulty(before, seen, now_seconds)
    if not servers:
        return _unserved(before, seen)
    status = _served(replace(before, running=True, useless=0, in_vain=0, unserved=False), servers, now_seconds)
    if status.state not in NOT_SERVING or seen.in_use:
        return status, "wait"
    return _useless(before, status, now_seconds, counted=_UNUSED)


def _served(status: DaemonStatus, servers: Collection[ServerState], now_seconds: float) -> DaemonStatus:
    if "FAULT" in servers:
        why = "a fatal fault of one client ended the contexts of all; the server serves again once all of them are gone"
        return _not_good(status, "fault", why)
    if "UNKNOWN" in servers:
        return _not_good(status, "failed", "its server reports an unknown state: see get_server_status")
    if "ACTIVE" in servers and "INITIALIZING" not in servers:
        return _good(replace(status, initializing_since_seconds=None), now_seconds)
    since_seconds = status.initializing_since_seconds
    since_seconds = now_seconds if since_seconds is None else since_seconds
    status = replace(status, initializing_since_seconds=since_seconds)
    if now_seconds - since_seconds > INITIALIZING_SECONDS:
        why = f"its server has been initializing for more than {INITIALIZING_SECONDS:.0f} s"
        return replace(status, state="failed", why=why, good_since_seconds=None)
    if status.state == "ready":
        return _good(status, now_seconds)  # another user's, while nobody else had the GPU
    return status if status.state == "fault" else replace(status, state="starting", why="its server is initializing")


def _good(status: DaemonStatus, now_seconds: float) -> DaemonStatus:
    since_seconds = status.good_since_seconds
    since_seconds = now_seconds if since_seconds is None else since_seconds
    steady = now_seconds - since_seconds >= STEADY_SECONDS
    return replace(
        status, state="ready", why="", good_since_seconds=since_seconds, failures=0 if steady else status.failures
    )
