"""
By which number `indexes` of `nodes` count each GPU: NVML's, when it was first seen with these `indexes`.

NVML counts what answers. Where a card has died, each one behind it has the number before from the next start of the
machine on, and would be shared as that one was. So the numbers are kept in a file that outlives this, for all parts on
the node.
"""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock

import msgspec

from plugin.gpus.gpu import Gpu
from plugin.state_files import read_json, write_atomically
from policies.nodes import NodeRule

_log = logging.getLogger(__name__)

FILE = "gpu-numbers.json"

NumberOf = Callable[[Gpu], int]  # of a MIG instance: the number of its GPU
_Indexes = tuple[tuple[int, ...], ...]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says."""

    indexes: _Indexes  # of the entries of `nodes`, when the numbers were taken
    numbers: dict[str, int]  # by UUID


class GpuNumbers:
    """
    The numbers of one node's GPUs, for any thread; what is said of a GPU stays.

    *rules* are the entries of `nodes` that can select GPUs of this node: with other `indexes` in them GPUs are counted
    anew, and with none, nothing is kept. *directory* is that of the file; with None the numbers are those of this run.
    """

    def __init__(self, directory: Path | None, rules: Iterable[NodeRule]) -> None:
        self._file = None if directory is None else _NumbersFile(directory / FILE, indexes_of(rules))
        self._lock = Lock()
        self._numbers: dict[str, int] = {}

    def of(self, gpu: Gpu) -> int:
        """Say by which number a GPU is counted, or the GPU of a MIG instance."""
        uuid = gpu.physical_uuid
        with self._lock:
            if uuid not in self._numbers:
                self._numbers[uuid] = gpu.index if self._file is None else self._file.number(uuid, now=gpu.index)
            return self._numbers[uuid]


def indexes_of(rules: Iterable[NodeRule]) -> tuple[tuple[int, ...], ...]:
    """List the `indexes` in *rules*: with the same ones, GPUs keep their numbers."""
    return tuple(rule.indexes for rule in rules if rule.indexes is not None)


class _NumbersFile:
    """The file, which other parts of the node read and write too; they see the same GPUs."""

    def __init__(self, path: Path, indexes: _Indexes) -> None:
        self._path = path
        self._indexes = indexes
        if not indexes:
            self._remove()
        elif self._read() is None:
            self._write({})

    def number(self, uuid: str, *, now: int) -> int:
        """Return the number that a GPU was given first; *now*, what NVML says, if it is given one here."""
        numbers = self._read()
        if numbers is None:  # there are no `indexes`, another part has newer ones already, or nothing can be kept
            return now
        if uuid not in numbers:
            self._write({**numbers, uuid: now})
        elif numbers[uuid] != now:
            reason = f"NVML counts it as {now} now; to have it counted anew, change `indexes` or remove {self._path}"
            _log.warning("a GPU keeps its number", extra={"gpu": uuid, "number": numbers[uuid], "reason": reason})
        return numbers.get(uuid, now)

    def _read(self) -> dict[str, int] | None:
        """Read the numbers that were given with the same `indexes`; None where there are none."""
        record = read_json(self._path, _Record)
        return record.numbers if record and record.indexes == self._indexes else None

    def _write(self, numbers: dict[str, int]) -> None:
        try:
            content = msgspec.json.encode(_Record(indexes=self._indexes, numbers=numbers))
            write_atomically(self._path, content, to_disk=True)
        except OSError as error:
            why = f"{self._path}: {error.strerror}: after the next start of the machine NVML's numbers of then count"
            _log.warning("the numbers of GPUs cannot be kept for `indexes`", extra={"reason": why})

    def _remove(self) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            why = f"{self._path}: {error.strerror}"
            _log.warning("numbers of GPUs for `indexes` of before cannot be removed", extra={"reason": why})
