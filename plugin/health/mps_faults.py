"""Which MPS daemons are not good, as their supervisor has published it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from plugin.boot_clock import boot_seconds
from plugin.mps.presence import has_ended
from plugin.mps.state import STATE_FILE, MpsState, fault, read_state

MpsFaults = Callable[[Collection[str]], Mapping[str, str]]  # UUIDs: why, by UUID

_ENDED = "gpu-share mps does not run any more, and the MPS daemons with it: see the log of its last run"


class PublishedMpsFaults:
    """Reads the supervisor's file in *state_dir* whenever it is another."""

    def __init__(self, state_dir: Path, *, boot_id: str, clock: Callable[[], float] = boot_seconds) -> None:
        self._state_dir = state_dir
        self._boot_id = boot_id
        self._clock = clock
        self._read: tuple[int, ...] | None = None  # which file the state is from
        self._state: MpsState | None = None

    def __call__(self, gpu_uuids: Collection[str]) -> dict[str, str]:
        """Say why, by UUID, for each of those GPUs on which no container may start."""
        file = self._file()
        if file != self._read:
            self._read, self._state = file, read_state(self._state_dir) if file else None
        if has_ended(self._state_dir):
            return dict.fromkeys(gpu_uuids, _ENDED)
        now_seconds = self._clock()  # once it is read: what it says must not seem to be of the future
        found = {uuid: self._fault(uuid, now_seconds) for uuid in gpu_uuids}
        return {uuid: why for uuid, why in found.items() if why is not None}

    def _fault(self, uuid: str, now_seconds: float) -> str | None:
        return fault(self._state, uuid, now_seconds=now_seconds, boot_id=self._boot_id)

    def _file(self) -> tuple[int, ...] | None:
        try:
            status = (self._state_dir / STATE_FILE).lstat()
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns, status.st_size)
