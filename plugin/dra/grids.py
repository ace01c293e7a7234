"""
Into how many vGPUs each GPU is divided, and was in the last minutes; in a file for the plugin that comes next.

The scheduler may have allocated a device of an earlier grid that is not prepared yet. Unless it stays published, the
scheduler counts it for nothing, and gives its room to others.
"""

import logging
from collections.abc import Callable, Collection
from math import inf
from pathlib import Path
from threading import Lock

import msgspec

from plugin.state_files import boot_seconds, read_json, write_atomically
from policies.contract import SharingStrategy

_log = logging.getLogger(__name__)

STAY_SECONDS = 600.0  # the kubelet asks within seconds, and after an error again within 90
_FILE = "grids.json"


class Grid(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """How one GPU is divided."""

    gpu: str  # UUID
    strategy: SharingStrategy
    device: str
    parts: int


class Grids:
    """Remembers the grids of the GPUs, for any thread; the first that are followed end those in the file."""

    def __init__(self, directory: Path, *, clock: Callable[[], float] = boot_seconds) -> None:
        self._path = directory / _FILE
        self._clock = clock
        self._lock = Lock()
        self._now: frozenset[Grid] = frozenset()
        self._written = frozenset(read_json(self._path, tuple[Grid, ...]) or ())
        self._unwritten = ""  # why
        self._until_seconds = dict.fromkeys(self._written, inf)  # a GPU can take hours to come

    def follow(self, now: Collection[Grid]) -> tuple[Grid, ...]:
        """Take over the grids of now; those of the last minutes are returned."""
        with self._lock:
            now_seconds = self._clock()
            self._until_seconds |= dict.fromkeys(self._now.difference(now), now_seconds + STAY_SECONDS)
            self._now = frozenset(now)
            self._until_seconds = {
                grid: min(seconds, now_seconds + STAY_SECONDS)
                for grid, seconds in self._until_seconds.items()
                if seconds > now_seconds and grid not in self._now
            }
            return tuple(sorted(self._until_seconds))

    def renew(self, gpu: str = "") -> None:
        """Let earlier grids of a GPU stay, or of all: a claim of one is waiting to be prepared."""
        with self._lock:
            until_seconds = self._clock() + STAY_SECONDS
            asked = {grid: until for grid, until in self._until_seconds.items() if gpu in ("", grid.gpu)}
            self._until_seconds |= {grid: max(until, until_seconds) for grid, until in asked.items()}

    def keep(self) -> None:
        """Write what is followed, one thread at a time: before the scheduler hears of it, as long as the disk takes."""
        with self._lock:
            grids = self._now | self._until_seconds.keys()
        if grids == self._written and self._path.exists():
            return
        try:
            write_atomically(self._path, msgspec.json.encode(sorted(grids)), to_disk=True)
        except OSError as error:
            if str(error) != self._unwritten:
                _log.warning("cannot be written", extra={"file": str(self._path), "reason": str(error)})
            self._unwritten = str(error)
        else:
            self._written, self._unwritten = grids, ""
