"""
The file of what is held, as the device plugin keeps it: it is there before the kubelet hears of an allocation.

It outlives the plugin, not the machine: it lies beside the state of the GPUs, where `gpu-share mps` reads it too. After
a restart of the machine, and where it is lost, the kubelet's own checkpoint decides, which has our answers. To have the
file on a disk would take as long as the disk takes, while the kubelet starts no other pod, and would say no more.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from plugin.device_plugin.kubelet_checkpoint import read_answers
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.occupancy import read_occupancy
from plugin.shares import parts_file
from plugin.shares.parts_file import FILE, CheckpointError, Held, parts, read_parts, write_parts

_log = logging.getLogger(__name__)

_WHOLE_GPU = 1


class Checkpoint:
    """
    What was held when the last plugin ended, and where it is written from now on.

    Without *state_dir* it is kept by this process alone. What was written in another run of the machine than *boot_id*
    may be older than what the kubelet has, in *kubelet_dir*, of the resources of which *is_ours* says so.
    """

    def __init__(
        self,
        *,
        vgpus_per_gpu: int = 1,
        state_dir: Path | None = None,
        kubelet_dir: Path | None = None,
        is_ours: Callable[[str], bool] = bool,
        boot_id: str = "",
    ) -> None:
        self._state_dir = state_dir
        self._boot_id = boot_id
        self.vgpus_per_gpu = vgpus_per_gpu
        self.is_unreadable = False  # more may be held than is known, until the kubelet has named it
        self.unwritten = ""  # why the file is not as it should be; empty if it is
        self.held: Mapping[VGpuId, Held] = {}
        self.unknown_of = vgpus_per_gpu  # number of a vGPU that is held and not in the file
        self.allocations = 0  # number of the last answer: no other has the same, in any file of the kubelet's
        self.kubelet = ""  # which one has named what is held
        if state_dir is not None:
            self._read(state_dir, kubelet_dir, is_ours)
        numbers = (max(one.pod, one.call) for one in self.held.values())
        self.allocations = max([self.allocations, *numbers])

    @property
    def is_to_be_written(self) -> bool:
        """Whether there is no file of what is held now: it could not be written, or somebody has removed it."""
        return bool(self.unwritten) or (self._state_dir is not None and not (self._state_dir / FILE).exists())

    def write(self, held: Iterable[tuple[VGpuId, Held]], *, is_complete: bool = True) -> None:
        """
        Replace the file; what goes wrong is in `unwritten`, logged once, and tried again with the next change.

        As long as it is not known whether it *is_complete*, the next plugin must not rely on it either.
        """
        if self._state_dir is None:
            return
        before, self.unwritten = self.unwritten, ""
        boot_id = self._boot_id if is_complete else ""
        try:
            self._state_dir.mkdir(mode=0o755, exist_ok=True)
            content = parts(
                held,
                vgpus_per_gpu=self.vgpus_per_gpu,
                boot_id=boot_id,
                allocations=self.allocations,
                kubelet=self.kubelet,
            )
            write_parts(self._state_dir, content)
        except OSError as error:
            why = f"what is held cannot be written: {error.filename or self._state_dir}: {error.strerror}"
            if why != before:
                _log.error("checkpoint not written: nothing is allocated until it can be", extra={"reason": why})
            self.unwritten = why

    def _read(self, directory: Path, kubelet_dir: Path | None, is_ours: Callable[[str], bool]) -> None:
        """Read the file; where it is not of this run of the machine, what the kubelet keeps of our answers decides."""
        lost = ""
        try:
            found = read_parts(directory)
        except CheckpointError as error:
            found, lost, self.unknown_of = None, str(error), _WHOLE_GPU
        if found is not None:
            self.held, self.unknown_of, self.allocations = found.held, found.vgpus_per_gpu, found.allocations
            if found.boot_id == self._boot_id:
                self.kubelet = found.kubelet
                return
        answers = read_answers(kubelet_dir, is_ours) if kubelet_dir else {}
        self.held = _confirmed(self.held, answers)
        if answers and not lost and self._has_restarted(directory, found):
            self.held = {vgpu: msgspec.structs.replace(one, before_boot=True) for vgpu, one in self.held.items()}
        self.is_unreadable = answers is None or (bool(lost) and not answers)
        if self.is_unreadable:
            _log.error(
                "nobody knows on which GPUs held vGPUs are: nothing of their resource is free until these containers "
                "have ended",
                extra={"directory": str(directory), "reason": lost or "the kubelet's own checkpoint cannot be read"},
            )
        elif answers:
            _log.info(
                "what is held was read from the kubelet's own checkpoint",
                extra={
                    "vgpus": len(answers),
                    "reason": lost or "none of this plugin's was written since the last boot",
                },
            )

    def _has_restarted(self, directory: Path, found: parts_file.Checkpoint | None) -> bool:
        """Whether the file is of another run of the machine, or not there since no plugin has run in this one."""
        if found is not None:
            return found.boot_id not in ("", self._boot_id)
        return read_occupancy(directory, boot_id=self._boot_id) is None


def _confirmed(held: Mapping[VGpuId, Held], answers: Mapping[VGpuId, Held] | None) -> dict[VGpuId, Held]:
    """
    Give what is held, by the kubelet's checkpoint: that is complete, and the file may be of any earlier time.

    The file is believed where an answer does not say it: it is one of an earlier plugin.
    Where the kubelet's checkpoint says nothing at all, nobody knows. No container of before runs.
    """
    held = {vgpu: msgspec.structs.replace(one, container="", kept=False, forgotten=False) for vgpu, one in held.items()}
    if answers is None:
        return {vgpu: msgspec.structs.replace(one, gpu=None) for vgpu, one in held.items()}
    known = {vgpu: one if one.of else held.get(vgpu, one) for vgpu, one in answers.items()}
    return {vgpu: msgspec.structs.replace(one, pod=answers[vgpu].pod) for vgpu, one in known.items()}
