"""What one look at an MPS daemon saw."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from plugin.errors import ControlError, NotAskedError
from plugin.mps.answers import ServerState


@dataclass(frozen=True, slots=True)
class Gone:
    """No daemon holds the pipe directory."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A daemon could not be started."""

    why: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The daemon does not answer in time."""

    why: str


@dataclass(frozen=True, slots=True)
class Unread:
    """The daemon answers in time, and not as documented, which is no sign that it hangs."""

    why: str
    in_use: bool  # as below


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The daemon runs, and its socket is gone from its place: nobody can ask it, which is no sign that it hangs."""

    why: str
    in_use: bool  # its server lives, and containers may have contexts by it
    servers: Mapping[int, ServerState] = field(default_factory=dict)  # as it said where it could be asked all the same


@dataclass(frozen=True, slots=True)
class Blocked:
    """The daemon runs, and no container may start on the GPU, whatever it says."""

    why: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The daemon answers, and this is how its servers are, by PID."""

    servers: Mapping[int, ServerState]
    fault: str = ""  # why no container may start with it all the same
    in_vain: bool = False  # since a command had no answer in time, or failed
    in_use: bool = True  # containers may have contexts by it


Seen = Gone | NotStarted | NoAnswer | Unread | Unreachable | Blocked | Answered


@dataclass(frozen=True, slots=True)
class Fault:
    """Why no container may start with a daemon that answers; empty if one may."""

    why: str = ""
    in_vain: bool = False  # as above


def not_done(what: str, error: ControlError) -> Fault:
    """Say *what* a daemon does not do by its *error*; that it could not be asked says nothing about it."""
    return Fault(f"{what}: {error}", in_vain=not isinstance(error, NotAskedError))


def with_fault(seen: Answered | Unreachable, fault: Fault) -> Answered | Unreachable:
    """Say of a daemon, beside what was *seen*, why a client may take more than it should."""
    if isinstance(seen, Answered):
        return replace(seen, fault=fault.why, in_vain=fault.in_vain)
    return replace(seen, why=f"{seen.why}; {fault.why}") if fault.why else seen
