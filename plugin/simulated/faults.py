"""
What goes wrong with simulated GPUs, as the file of `--simulate` says it beside `gpus`.

    faults:                                          # at, recovers: seconds since the start
    - {at: 5, gpu: 1, xid: 31}                       # a program's: the driver asks for nothing
    - {at: 10, gpu: 0, xid: 79, recovers: 40}        # the driver asks for a reset until 40
    - {at: 20, gpu: 1, lost: true, recovers: 50}
    - {at: 30, gpu: 0, mps: server 4711 is in FAULT, recovers: 35}
    - {at: 60, nvml: fails, recovers: 90}

Each entry is one fault. Without `recovers` it stays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

MOST_FAULTS = 1000

_LONGEST_SECONDS = 7 * 24 * 3600
_KINDS = ("xid", "lost", "mps", "nvml")
_APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})  # after which a driver asks for nothing

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_SECONDS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedFault:
    """A fault with its beginning and its end, in seconds since the start."""

    at_seconds: float
    recovers_seconds: float = math.inf

    def held(self, *, since: float, until: float) -> bool:
        """Whether it was there at any moment from *since* to *until*."""
        return self.at_seconds <= until and since < self.recovers_seconds

    def holds(self, seconds: float) -> bool:
        """Whether it is there at that moment."""
        return self.held(since=seconds, until=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class XidFault(ScriptedFault):
    """The driver reports an XID."""

    gpu_uuid: str
    xid: int

    @property
    def asks_for_reset(self) -> bool:
        """Whether the driver asks for a reset until the GPU recovers."""
        return self.xid not in _APPLICATION_XIDS or self.recovers_seconds < math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFault(ScriptedFault):
    """The GPU cannot be reached."""

    gpu_uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsFault(ScriptedFault):
    """The GPU's MPS daemon is not ready."""

    gpu_uuid: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlFault(ScriptedFault):
    """NVML fails, for all GPUs."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault as it stands in the file."""

    at: _Seconds
    recovers: _Seconds | None = None
    gpu: int | None = None
    xid: Annotated[int, msgspec.Meta(ge=1, le=0xFFFF)] | None = None
    lost: bool | None = None
    mps: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    nvml: Literal["fails"] | None = None


def scripted_faults(entries: Sequence[Entry], gpu_uuids: Sequence[str]) -> tuple[ScriptedFault, ...]:
    """
    Make the faults of *entries*, by their beginning; their `gpu` counts in *gpu_uuids*.

    Raises:
        ValueError: If one contradicts itself or names no GPU; the message begins with the field.
    """
    faults = [_fault(entry, f"faults[{number}]", gpu_uuids) for number, entry in enumerate(entries)]
    return tuple(sorted(faults, key=lambda fault: fault.at_seconds))


def _fault(entry: Entry, place: str, gpu_uuids: Sequence[str]) -> ScriptedFault:
    kinds = [kind for kind in _KINDS if getattr(entry, kind) is not None]
    if len(kinds) != 1:
        raise ValueError(f"{place}: expected one of {', '.join(_KINDS)}, got {' and '.join(kinds) or 'none'}")
    at, recovers = entry.at, math.inf if entry.recovers is None else entry.recovers
    if recovers <= at:
        raise ValueError(f"{place}.recovers: expected more than at, which is {at:g}, got {recovers:g}")
    if entry.nvml is not None:
        if entry.gpu is not None:
            raise ValueError(f"{place}.gpu: expected none beside nvml, which fails for all GPUs: remove it")
        return NvmlFault(at_seconds=at, recovers_seconds=recovers)
    uuid = _uuid(entry.gpu, place, gpu_uuids)
    if entry.xid is not None:
        return XidFault(at_seconds=at, recovers_seconds=recovers, gpu_uuid=uuid, xid=entry.xid)
    if entry.mps is not None:
        return MpsFault(at_seconds=at, recovers_seconds=recovers, gpu_uuid=uuid, why=_sentence(entry.mps, place))
    if not entry.lost:
        raise ValueError(f"{place}.lost: expected true, got false: remove the entry")
    return LostFault(at_seconds=at, recovers_seconds=recovers, gpu_uuid=uuid)


def _uuid(number: int | None, place: str, gpu_uuids: Sequence[str]) -> str:
    if number is None:
        raise ValueError(f"{place}.gpu: expected the number of a GPU, got none: add it")
    if not 0 <= number < len(gpu_uuids):
        raise ValueError(f"{place}.gpu: expected 0 to {len(gpu_uuids) - 1}, one of gpus, got {number}")
    return gpu_uuids[number]


def _sentence(text: str, place: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{place}.mps: expected one printable line, got {text[:40]!a}")
    return text
