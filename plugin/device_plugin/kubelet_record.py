"""
The kubelet's checkpoint as it is replaced: what was in it and is no more, nobody has.

It is the one word on init containers, which the kubelet names to nobody: it has their vGPUs for as long as their pod
may run, and the kubelet gives no vGPU away that is in it. What a pod had that is gone the kubelet drops when it is
asked who holds what, and it writes the file at each allocation, and at each list of devices that a plugin sends.

What it writes is of the moment at which it begins: where the disk is slow, a file of before an allocation takes its
place long after. It admits one pod after the other, and no two of our answers have the same number: so a file tells of
an answer if one has come that has this or a later one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Lock

from plugin.device_plugin.holder import ENDED_OR_NOT, Holder
from plugin.device_plugin.kubelet_checkpoint import FILE, Kept, read_answers, read_kept
from plugin.gpus.gpu import VGpuId
from plugin.shares.parts_file import Held

# By then the kubelet has taken up an answer to Allocate, and mostly written it; until then it need not be asked.
_TAKEN_UP_SECONDS = 30.0
_ASK_EVERY_SECONDS = 60.0
# Where no later answer comes, what is in no file for so long never gets into one: its pod was rejected.
_NEVER_SECONDS = 3600.0
# Files in a row: the kubelet makes one after the other, and may bring two that wait for the disk in the wrong order.
_LACKING_FILES = 2


class KubeletRecord:
    """The file in *kubelet_dir*; for any thread. Seconds are of any clock that never goes back."""

    def __init__(self, kubelet_dir: Path) -> None:
        self._kubelet_dir = kubelet_dir
        self._looking = Lock()
        self._version: tuple[int, ...] | None = None
        self._kept: Kept | None = None
        self._is_noted = True
        self._answers: Mapping[VGpuId, Held] | None = None
        self._looked_seconds = self._written_seconds = self._asked_seconds = -inf  # written then or later

    def look(self, now_seconds: float) -> None:
        """Read it if it was replaced since the last look: it was written after that. Where it cannot be, look later."""
        with self._looking:
            version = _version(self._kubelet_dir / FILE)
            if version != self._version:
                try:
                    kept = read_kept(self._kubelet_dir)
                except OSError:
                    return
                if version != _version(self._kubelet_dir / FILE):  # which of the two was read, nobody knows
                    return
                self._version, self._written_seconds = version, self._looked_seconds
                self._kept, self._answers, self._is_noted = kept, None, kept is None
            self._looked_seconds = now_seconds

    def noted(self, held: Mapping[str, Holder]) -> Mapping[str, Holder]:
        """Note of what is held whether a file that was replaced has it."""
        with self._looking:
            kept, is_noted, self._is_noted = self._kept, self._is_noted, True
        if kept is None or is_noted:
            return held
        return {text: self._with_note(text, one, kept) for text, one in held.items()}

    def has(self, device_id: str) -> bool:
        """Whether some container may have a device; False where the file does not tell."""
        return self._kept is not None and device_id in self._kept.pods

    def has_others(self, device_id: str, pod_uid: str) -> bool:
        """Whether a pod has devices without one that it had: it was admitted anew, by a kubelet that had forgotten."""
        kept = self._kept
        return kept is not None and kept.pods.get(device_id) != pod_uid and pod_uid in kept.pods.values()

    @property
    def is_readable(self) -> bool:
        """Whether there is a file, as a kubelet writes it."""
        return self._kept is not None

    def answers(self) -> Mapping[VGpuId, Held]:
        """Say what containers have by our answers, as far as the file tells."""
        if self._answers is None and self._kept is not None:
            self._answers = read_answers(self._kubelet_dir, lambda _resource: False)
        return self._answers or {}

    @property
    def latest(self) -> int:
        """The number of the last of our answers that it has."""
        return self._kept.latest if self._kept is not None else 0

    @property
    def by_variable(self) -> bool:
        """Whether NVIDIA_VISIBLE_DEVICES brings some container its GPU, as far as the file tells."""
        return self._kept is not None and self._kept.by_variable

    def is_due(self, held: Mapping[str, Holder], now_seconds: float, *, is_settled: bool) -> bool:
        """Whether the kubelet should be had to write it now, for what is *held*; at most once a minute."""
        last_seconds = max(self._written_seconds, self._asked_seconds)
        unsure_seconds = min(_unsure_since(held, is_settled=is_settled), default=inf)
        is_due = unsure_seconds + _TAKEN_UP_SECONDS <= now_seconds >= last_seconds + _ASK_EVERY_SECONDS
        if is_due:
            self._asked_seconds = now_seconds
        return is_due

    def _with_note(self, text: str, holder: Holder, kept: Kept) -> Holder:
        has = text in kept.pods
        told = holder.is_told or holder.is_kept or (kept.latest >= holder.call if holder.call else has)
        is_of_it = has and kept.latest >= holder.call
        counts = told or self._written_seconds >= holder.since_seconds + _NEVER_SECONDS
        return replace(
            holder,
            is_kept=holder.is_kept or is_of_it,
            pod_uid=kept.pods[text] if is_of_it else holder.pod_uid,
            is_told=told,
            lacking_files=0 if has else holder.lacking_files + counts,
        )


def has_dropped(holder: Holder) -> bool:
    """Whether nobody has a vGPU any more that the kubelet has never named."""
    return holder.lacking_files >= _LACKING_FILES


def _unsure_since(held: Mapping[str, Holder], *, is_settled: bool) -> Iterator[float]:
    """Say since when what is held of which the kubelet's checkpoint alone can say that it has ended."""
    named = {one.pod for one in held.values() if one.container is not None} - {0}
    for one in held.values():
        if (one.container is None and one.pod not in named) or (is_settled and one.container == ENDED_OR_NOT):
            yield one.since_seconds


def _version(path: Path) -> tuple[int, ...] | None:
    """Say which file is there; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
