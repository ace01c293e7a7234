"""
EXCLUSIVE_PROCESS for the GPUs that are shared by MPS: with it, a program that goes past MPS gets no GPU at all.

The mode is lost with a reset of the GPU or a reload of the driver, so it is set again and again. What it was before is
kept in a file, so that it is put back even by a process that did not set it.
"""

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from plugin.gpus.nvml import NvmlModes, explained, initialised, number_of
from plugin.state_files import read_json, write_atomically
from policies.mig import names_instance

_log = logging.getLogger(__name__)

EXCLUSIVE_PROCESS = 3
# Older drivers have no compute modes of MIG instances; docs/decisions/0026-mig-instances-shared-by-mps.md.
_NO_SUCH_MODE = frozenset({2, 3, 13})  # NVML's numbers: invalid argument, not supported, function not found


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """The modes that GPUs had before, by UUID. A reboot resets them all."""

    boot_id: str
    modes: dict[str, int]


class ModeError(Exception):
    """A compute mode that is not as it should be; the sentence says why."""


class ComputeModes:
    """Sets the compute mode of GPUs, and puts it back; for any thread."""

    def __init__(self, load_nvml: Callable[[], NvmlModes], *, record: Path, boot_id: str) -> None:
        self._load_nvml = load_nvml
        self._path = record
        self._boot_id = boot_id
        self._locks: dict[str, Lock] = {}  # by UUID: NVML can hang for one GPU and answer for others
        self._recording = Lock()  # taken after one of those, and for the record alone
        self._found: dict[str, int] = {}  # in this run, should the record be lost meanwhile
        self._put_back: set[str] = set()  # those that are recorded as changed, and no longer are
        self._without: set[str] = set()  # those that have no such mode, or do not keep it, as the log says
        self._ended = False

    def hold(self, gpu_uuids: Collection[str]) -> dict[str, str]:
        """Set EXCLUSIVE_PROCESS where it is not in force; one sentence for each GPU where it cannot be."""
        return self._each(gpu_uuids, self._hold_one)

    def changed(self) -> frozenset[str]:
        """Name the GPUs whose mode is another one than was found, in this run or an earlier one; waits for nobody."""
        return frozenset(self._recorded())

    def release(self, *, keep: Collection[str]) -> dict[str, str]:
        """Put back what was found on all GPUs but *keep*; one sentence for each GPU where that fails."""
        changed = {**self._found, **self._recorded()}
        return self._each([uuid for uuid in changed if uuid not in keep], self._release_one)

    def end(self, *, keep: Collection[str]) -> dict[str, str]:
        """Put back what was found on all GPUs but *keep*, as `release` does, and change nothing from now on."""
        self._ended = True
        for lock in [*self._locks.values()]:
            with lock:  # whose mode is being set is recorded after it
                pass
        return self.release(keep=keep)

    def _each(self, gpu_uuids: Collection[str], act: Callable[[NvmlModes, str], None]) -> dict[str, str]:
        if not gpu_uuids:
            return {}
        faults = {}
        nvml = self._load_nvml()
        try:
            with initialised(nvml):
                for uuid in gpu_uuids:
                    try:
                        with self._locks.setdefault(uuid, Lock()):
                            act(nvml, uuid)
                    except (nvml.NVMLError, OSError, ModeError) as error:
                        faults[uuid] = _sentence(error)
        except nvml.NVMLError as error:
            faults = dict.fromkeys(gpu_uuids, _sentence(error))
        return faults

    def _hold_one(self, nvml: NvmlModes, uuid: str) -> None:
        if self._ended:
            raise ModeError("compute modes were restored: gpu-share mps ends")
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        try:
            self._hold_mode(nvml, uuid, handle)
        except nvml.NVMLError as error:
            if not names_instance(uuid) or number_of(error) not in _NO_SUCH_MODE:
                raise
            self._forget(uuid)
            self._warn_of_none(uuid)

    def _warn_of_none(self, uuid: str) -> None:
        if uuid not in self._without:
            self._without.add(uuid)
            of = "the instance" if names_instance(uuid) else "the GPU"
            _log.warning(f"no EXCLUSIVE_PROCESS: programs can bypass MPS on {of}", extra={"gpu": uuid})

    def _hold_mode(self, nvml: NvmlModes, uuid: str, handle: Any) -> None:
        found = nvml.nvmlDeviceGetComputeMode(handle)
        with self._recording:
            recorded = self._recorded()
            if uuid not in recorded:
                recorded[uuid] = self._found.get(uuid, found)
                self._write(recorded)  # before it changes
                self._put_back.discard(uuid)
            self._found[uuid] = recorded[uuid]
        if found == EXCLUSIVE_PROCESS:
            self._without.discard(uuid)
            return
        nvml.nvmlDeviceSetComputeMode(handle, EXCLUSIVE_PROCESS)
        if nvml.nvmlDeviceGetComputeMode(handle) == EXCLUSIVE_PROCESS:
            _log.info("compute mode set to EXCLUSIVE_PROCESS", extra={"gpu": uuid, "found": found})
        elif names_instance(uuid):
            self._warn_of_none(uuid)
        else:
            raise ModeError("the driver says that it has set EXCLUSIVE_PROCESS, and has not: programs would bypass MPS")

    def _release_one(self, nvml: NvmlModes, uuid: str) -> None:
        mode = self._recorded().get(uuid, self._found.get(uuid))
        if mode is None:
            return  # another thread has put it back
        nvml.nvmlDeviceSetComputeMode(nvml.nvmlDeviceGetHandleByUUID(uuid), mode)
        self._found.pop(uuid, None)
        try:
            self._strike(uuid)
        except OSError as error:
            self._put_back.add(uuid)
            _log.warning("a compute mode was put back, and cannot be recorded so", extra={"reason": str(error)})

    def _forget(self, uuid: str) -> None:
        """Take back that the mode of an instance would have to be restored: it was never changed."""
        if self._found.pop(uuid, None) is not None:
            self._strike(uuid)

    def _strike(self, uuid: str) -> None:
        with self._recording:
            recorded = self._recorded()
            if recorded.pop(uuid, None) is not None:
                self._write(recorded)

    def _recorded(self) -> dict[str, int]:
        record = read_json(self._path, _Record)
        modes = record.modes if record and record.boot_id == self._boot_id else {}
        return {uuid: mode for uuid, mode in modes.items() if uuid not in self._put_back}

    def _write(self, modes: dict[str, int]) -> None:
        if modes:
            write_atomically(self._path, msgspec.json.encode(_Record(boot_id=self._boot_id, modes=modes)))
        else:
            self._path.unlink(missing_ok=True)


def _sentence(error: Exception) -> str:
    if isinstance(error, ModeError):
        return str(error)
    if isinstance(error, OSError):
        return f"the compute mode found cannot be recorded, so it is not changed: {error}"
    return f"the compute mode cannot be changed: {explained(error, changing=True)}"
