"""
Which of NVIDIA's CDI devices a container runtime would find for each GPU of this node.

The directories are read at the start and when they change, by the thread that reconciles; Allocate only looks up a
name. Names are resolved as container runtimes do: a file in a later directory is before one in an earlier, and a device
that two files of one directory have is a device of neither.
"""

import logging
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from plugin.gpus.gpu import Gpu
from plugin.shares.nvidia_specification import (
    LARGEST_BYTES,
    NVIDIA_KIND,
    NvidiaSpecification,
    SpecificationError,
    parse,
)
from program.files import read_file

_log = logging.getLogger(__name__)

_ENDINGS = (".json", ".yaml")
_MOST_FILES = 256  # of one directory
_OURS = "gpu-share"  # what our own specifications begin with: there may be one for each pod with a share
_LONGEST_WHY = 300


class _File(msgspec.Struct, frozen=True):
    path: Path
    specification: NvidiaSpecification


class NvidiaDevices:
    """The devices in *directories*, in the order in which container runtimes are told to look there."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = tuple(dict.fromkeys(directories))
        self._state: object = None
        self._troubles: tuple[str, ...] = ()
        self._files: tuple[tuple[_File, ...], ...] = ()  # by directory
        self.names: Mapping[str, str] = {}  # fully qualified, by UUID of the GPU; replaced as a whole
        self.complete = False  # there is one of each GPU that is not missing
        self.told = ""  # which are there, in a sentence

    def look(self, gpus: Sequence[Gpu], *, driver: str, missing: Collection[str] = ()) -> None:
        """
        Take up what has changed; *driver* is the version that runs, empty if it is not known.

        No container gets those *missing*, by UUID, and NVIDIA's toolkit leaves them out: they need no device.
        """
        state = tuple(_state(directory) for directory in self._directories)
        if state != self._state:
            self._read()
            self._state = state  # of before: what was changed meanwhile is read by the next look
        names, troubles = self._resolved(gpus, driver)
        self.names = names
        needed = [gpu for gpu in gpus if gpu.uuid not in missing]
        self.complete = all(gpu.uuid in names for gpu in needed)
        if needed:
            self._tell(needed, [*self._troubles, *troubles])

    def _read(self) -> None:
        troubles: list[str] = []
        self._files = tuple(tuple(_files(directory, troubles)) for directory in self._directories)
        self._troubles = tuple(troubles)

    def _resolved(self, gpus: Sequence[Gpu], driver: str) -> tuple[dict[str, str], list[str]]:
        found: dict[str, str] = {}
        troubles: dict[str, None] = {}
        conflicts = {
            name
            for files in self._files
            for name, times in Counter(name for file in files for name in file.specification.devices).items()
            if times > 1
        }
        for gpu in gpus:
            for file in (file for files in reversed(self._files) for file in files):
                name = file.specification.device_of(gpu)
                if name is None or gpu.uuid in found:
                    continue
                if file.specification.driver not in ("", driver or file.specification.driver):
                    troubles[f"{file.path} is of driver {file.specification.driver}, and {driver} runs"] = None
                elif name in conflicts:
                    troubles[f"{NVIDIA_KIND}={name} is in two files of one directory"] = None
                elif self._first_with(name) is file:
                    found[gpu.uuid] = f"{NVIDIA_KIND}={name}"
        return found, list(troubles)

    def _first_with(self, name: str) -> _File | None:
        """Return the file by which a runtime resolves the device with this name."""
        files = (file for files in reversed(self._files) for file in files)
        return next((file for file in files if name in file.specification.devices), None)

    def _tell(self, gpus: Sequence[Gpu], troubles: Sequence[str]) -> None:
        there = sum(gpu.uuid in self.names for gpu in gpus)
        places = " and ".join(map(str, self._directories))
        why = f" ({'; '.join(troubles)[:_LONGEST_WHY]})" if troubles else ""
        if there == len(gpus):
            told = f"with NVIDIA's own CDI device of each GPU{why}"
        else:
            some = f"for {len(gpus) - there} of {len(gpus)} GPUs" if there else "for any GPU"
            told = (
                f"no CDI device {NVIDIA_KIND} {some} in {places}{why}: NVIDIA's container runtime must bring the driver"
            )
        told = told.encode(errors="backslashreplace").decode()  # a file's name can be no text, and this is published
        if told != self.told:
            self.told = told
            log = _log.warning if troubles else _log.info
            log("NVIDIA's CDI devices", extra={"devices": dict(self.names), "told": told})


def _state(directory: Path) -> object:
    """What changes when a specification does."""
    try:
        with os.scandir(directory) as entries:
            return sorted((entry.name, *_version(entry)) for entry in entries if _may_be_theirs(entry.name))
    except OSError as error:
        return error.errno


def _may_be_theirs(name: str) -> bool:
    return name.endswith(_ENDINGS) and not name.startswith(_OURS)


def _version(entry: "os.DirEntry[str]") -> tuple[int, ...]:
    try:
        status = entry.stat()
    except OSError:  # a link to nowhere, or it has just gone
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _files(directory: Path, troubles: list[str]) -> Iterator[_File]:
    """Yield NVIDIA's specifications in *directory*; what cannot be read of it is added to *troubles*."""
    try:
        paths = sorted(path for path in directory.iterdir() if _may_be_theirs(path.name))
    except FileNotFoundError:
        return
    except OSError as error:
        troubles.append(f"{directory}: {error.strerror}")
        return
    if len(paths) > _MOST_FILES:
        troubles.append(f"{directory} has {len(paths)} files, of which {_MOST_FILES} are read")
    for path in paths[:_MOST_FILES]:
        try:
            specification = parse(read_file(path, most_bytes=LARGEST_BYTES + 1))
        except OSError as error:
            troubles.append(f"{path}: {error.strerror}")
        except SpecificationError as error:
            troubles.append(f"{path}: {error}")
        else:
            if specification is not None:
                yield _File(path, specification)
