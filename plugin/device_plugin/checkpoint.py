"""
The file of what is held, as the device plugin keeps it: it is there before the kubelet hears of an allocation.

It outlives the plugin. Whether it outlives a loss of power is the disk's affair: to force each allocation to it would
take as long as the disk takes, while the kubelet starts no other pod. So after a restart of the machine, and where the
file is lost, the kubelet's own checkpoint decides, which has our answers. What `gpu-share mps` must know of it is
written beside the state of the GPUs as well.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from plugin.device_plugin.kubelet_checkpoint import read_answers
from plugin.gpus.gpu import VGpuId
from plugin.shares.parts_file import CheckpointError, Held, parts, read_parts, write_parts

_log = logging.getLogger(__name__)

DIRECTORY = "gpu-share"  # in the kubelet's, of which some kubelets remove every file when they start
_WHOLE_GPU = 1


class Checkpoint:
    """
    What was held when the last plugin ended, and where it is written from now on.

    Without *kubelet_dir* it is kept by this process alone. What was written in another run of the machine than
    *boot_id* may be older than what the kubelet has of the resources of which *is_ours* says so.
    """

    def __init__(
        self,
        *,
        vgpus_per_gpu: int = 1,
        kubelet_dir: Path | None = None,
        state_dir: Path | None = None,
        is_ours: Callable[[str], bool] = bool,
        boot_id: str = "",
    ) -> None:
        self._kubelet_dir = kubelet_dir
        self._state_dir = state_dir
        self._boot_id = boot_id
        self.vgpus_per_gpu = vgpus_per_gpu
        self.is_unreadable = False  # more may be held than is known, until the kubelet has named it
        self.unwritten = ""  # why the file is not as it should be; empty if it is
        self.untold = ""  # why `gpu-share mps` cannot read it; empty if it can
        self.held: Mapping[VGpuId, Held] = {}
        self.unknown_of = vgpus_per_gpu  # number of a vGPU that is held and not in the file
        if kubelet_dir is not None:
            self._read(kubelet_dir, is_ours)

    def write(self, held: Iterable[tuple[VGpuId, Held]], *, is_complete: bool = True) -> None:
        """
        Replace the file; what goes wrong is in `unwritten` or `untold`, and is tried again with the next change.

        As long as it is not known whether it *is_complete*, the next plugin must not rely on it either.
        """
        if self._kubelet_dir is None:
            return
        boot_id = self._boot_id if is_complete else ""
        content = parts(held, vgpus_per_gpu=self.vgpus_per_gpu, boot_id=boot_id)
        self.unwritten = self._replaced(self._kubelet_dir / DIRECTORY, content, before=self.unwritten)
        if self._state_dir is not None:
            self.untold = self._replaced(self._state_dir, content, before=self.untold)

    def _replaced(self, directory: Path, content: bytes, *, before: str) -> str:
        """Replace the file in *directory*, and say why that is impossible; it is logged unless it was so *before*."""
        try:
            directory.mkdir(mode=0o755, exist_ok=True)
            write_parts(directory, content)
        except OSError as error:
            why = f"what is held cannot be written: {error.filename or directory}: {error.strerror}"
            if why != before:
                _log.error("checkpoint not written: vgpusPerGpu stays as it is until it can be", extra={"reason": why})
            return why
        return ""

    def _read(self, kubelet_dir: Path, is_ours: Callable[[str], bool]) -> None:
        """Read the file; where it is not of this run of the machine, what the kubelet keeps of our answers decides."""
        directory = kubelet_dir / DIRECTORY
        lost = ""
        try:
            found = read_parts(directory)
        except CheckpointError as error:
            found, lost, self.unknown_of = None, str(error), _WHOLE_GPU
        if found is not None:
            self.held, self.unknown_of = found.held, found.vgpus_per_gpu
            if found.boot_id == self._boot_id:
                return
        answers = read_answers(kubelet_dir, is_ours)
        self.held = _confirmed(self.held, answers)
        self.is_unreadable = answers is None or bool(lost) or (found is None and bool(answers))
        if answers is None:
            reason = lost or "the kubelet's own checkpoint is not one that this version can read"
            _log.error(
                "nobody knows on which GPUs held vGPUs are: nothing of their resource is free until these containers "
                "have ended",
                extra={"directory": str(directory), "reason": reason},
            )
        elif self.is_unreadable:
            _log.warning(
                "checkpoint lost: what is held is what the kubelet's own checkpoint says",
                extra={"directory": str(directory), "reason": lost or "there is none"},
            )


def _confirmed(held: Mapping[VGpuId, Held], answers: Mapping[VGpuId, Held] | None) -> dict[VGpuId, Held]:
    """
    Give what is held, by the kubelet's checkpoint: that is complete, and the file may be of any earlier time.

    The file is believed where an answer does not say it: it is one of an earlier plugin, which forced it to the disk.
    Where the kubelet's checkpoint says nothing at all, nobody knows.
    """
    if answers is None:
        return {vgpu: msgspec.structs.replace(one, gpu=None) for vgpu, one in held.items()}
    return {vgpu: one if one.of else held.get(vgpu, one) for vgpu, one in answers.items()}
