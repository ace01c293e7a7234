"""
The file of what is held, as the device plugin keeps it: on the disk before the kubelet hears of an allocation.

The kubelet writes its own checkpoint in the directory above at every allocation, so a disk that hangs holds up neither
more than the other. What `gpu-share mps` must know of it is written beside the state of the GPUs as well.
"""

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from plugin.gpus.gpu import VGpuId
from plugin.shares.parts_file import CheckpointError, Held, read_parts, write_parts

_log = logging.getLogger(__name__)

DIRECTORY = "gpu-share"  # in the kubelet's, of which some kubelets remove every file when they start
_WHOLE_GPU = 1
_KUBELETS_OWN = "kubelet_internal_checkpoint"
_ALLOCATED = re.compile(rb'"ResourceName":"([^"]{1,400})"')


class Checkpoint:
    """
    What was held when the last plugin ended, and where it is written from now on.

    Without *kubelet_dir* it is kept by this process alone. Where the file is missing, and the kubelet has allocated
    resources of which *is_ours* says so, it is lost.
    """

    def __init__(
        self,
        *,
        vgpus_per_gpu: int = 1,
        kubelet_dir: Path | None = None,
        state_dir: Path | None = None,
        is_ours: Callable[[str], bool] = bool,
    ) -> None:
        self._kubelet_dir = kubelet_dir
        self._state_dir = state_dir
        self.vgpus_per_gpu = vgpus_per_gpu
        self.is_unreadable = False
        self.unwritten = ""  # why the file is not as it should be; empty if it is
        self.untold = ""  # why `gpu-share mps` cannot read it; empty if it can
        self.held: Mapping[VGpuId, Held] = {}
        self.unknown_of = vgpus_per_gpu  # number of a vGPU that is held and not in the file
        if kubelet_dir is not None:
            self._read(kubelet_dir, is_ours)

    def write(self, held: Mapping[VGpuId, Held], *, to_disk: bool = False) -> None:
        """Replace the file; what goes wrong is in `unwritten` or `untold`, and is tried again with the next change."""
        if self._kubelet_dir is None:
            return
        self.unwritten = self._replaced(self._kubelet_dir / DIRECTORY, held, before=self.unwritten, to_disk=to_disk)
        if self._state_dir is not None:
            self.untold = self._replaced(self._state_dir, held, before=self.untold)

    def _replaced(self, directory: Path, held: Mapping[VGpuId, Held], *, before: str, to_disk: bool = False) -> str:
        """Replace the file in *directory*, and say why that is impossible; it is logged unless it was so *before*."""
        try:
            directory.mkdir(mode=0o755, exist_ok=True)
            write_parts(directory, held.items(), vgpus_per_gpu=self.vgpus_per_gpu, to_disk=to_disk)
        except OSError as error:
            why = f"what is held cannot be written: {error.filename or directory}: {error.strerror}"
            if why != before:
                _log.error("checkpoint not written: vgpusPerGpu stays as it is until it can be", extra={"reason": why})
            return why
        return ""

    def _read(self, kubelet_dir: Path, is_ours: Callable[[str], bool]) -> None:
        """Read the file; where it cannot be believed, whatever the kubelet names as held may be a whole GPU."""
        try:
            found = read_parts(kubelet_dir / DIRECTORY)
        except CheckpointError as error:
            _log.error(
                "nobody knows what held vGPUs are: nothing of their resource is free until these containers have ended",
                extra={"directory": str(kubelet_dir / DIRECTORY), "reason": str(error)},
            )
            self.is_unreadable = True
            self.unknown_of = _WHOLE_GPU
        else:
            if found is not None:
                self.held, self.unknown_of = found.held, found.vgpus_per_gpu
            else:
                self.is_unreadable = any(map(is_ours, _allocated(kubelet_dir)))


def _allocated(kubelet_dir: Path) -> list[str]:
    """List the resources of which the kubelet has allocated something, by its own checkpoint; none if it has none."""
    try:
        content = (kubelet_dir / _KUBELETS_OWN).read_bytes()
    except OSError:
        return []
    return [name.decode(errors="replace") for name in _ALLOCATED.findall(content)]
