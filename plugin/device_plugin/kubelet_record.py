"""
The kubelet's checkpoint as it is replaced: what is in it for nobody, nobody has.

It is the one word on init containers, which the kubelet names to nobody: it has their vGPUs for as long as their pod
may run, and the kubelet gives no vGPU away that is in it. What a pod had that is gone the kubelet drops when it is
asked who holds what, and it writes the file at each allocation, and at each list of devices that a plugin sends.
"""

from collections.abc import Iterable
from math import inf
from pathlib import Path

from plugin.device_plugin.kubelet_checkpoint import FILE, Kept, read_kept

# By then the kubelet has taken up an answer to Allocate, and what it writes has it: it forces the file to the disk.
_TAKEN_UP_SECONDS = 30.0
_ASK_EVERY_SECONDS = 60.0


class KubeletRecord:
    """The file in *kubelet_dir*. One thread at a time calls; seconds are of any clock that never goes back."""

    def __init__(self, kubelet_dir: Path) -> None:
        self._kubelet_dir = kubelet_dir
        self._version: tuple[int, ...] | None = None
        self._kept: Kept | None = None
        self._looked_seconds = self._written_seconds = self._asked_seconds = -inf  # written then or later

    def look(self, now_seconds: float) -> None:
        """Read it if it was replaced since the last look: it was written after that."""
        version = _version(self._kubelet_dir / FILE)
        if version != self._version:
            self._version, self._written_seconds = version, self._looked_seconds
            self._kept = read_kept(self._kubelet_dir)
        self._looked_seconds = now_seconds

    def lacks(self, device_id: str, *, since_seconds: float) -> bool:
        """Whether nobody has a vGPU any more that was allocated then; False where the file does not tell."""
        is_newer = self._written_seconds >= since_seconds + _TAKEN_UP_SECONDS
        return is_newer and self._kept is not None and device_id not in self._kept.ids

    @property
    def by_variable(self) -> bool:
        """Whether NVIDIA_VISIBLE_DEVICES brings some container its GPU, as far as the file tells."""
        return self._kept is not None and self._kept.by_variable

    def is_due(self, since_seconds: Iterable[float], now_seconds: float) -> bool:
        """Whether the kubelet should be had to write it now, for what was allocated then; at most once a minute."""
        last_seconds = max(self._written_seconds, self._asked_seconds)
        is_due = min(since_seconds, default=inf) + _TAKEN_UP_SECONDS <= now_seconds >= last_seconds + _ASK_EVERY_SECONDS
        if is_due:
            self._asked_seconds = now_seconds
        return is_due


def _version(path: Path) -> tuple[int, ...] | None:
    """Say which file is there; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
