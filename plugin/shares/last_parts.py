"""What the file of held vGPUs says, and said last where the directory that it is in was removed on the node."""

from collections.abc import Callable
from pathlib import Path

from plugin.gpus.gpu import VGpuId
from plugin.presence import PLUGIN, lives
from plugin.removal import removed
from plugin.shares.parts_file import Checkpoint, CheckpointError, read_parts


class LastParts:
    """The file in *directory*; for any thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._last: Checkpoint | None = None

    def read(self) -> Checkpoint | None:
        """
        Read what is held; what was read last where the directory was removed, and None where there is no file.

        Raises:
            CheckpointError: If there is one that cannot be read.
        """
        found = read_parts(self._directory)
        if found is None:
            return self._last if removed({"--state-dir": self._directory}) else None
        self._last = found
        return found

    def kept(self) -> Checkpoint:
        """
        Read what is held as long as a plugin runs, which takes out at once what has ended; nothing where none does.

        Raises:
            CheckpointError: If there is a file that cannot be read.
        """
        found = self.read() if lives(self._directory, PLUGIN) else None
        return found or Checkpoint(1, {})

    def bindings(self) -> Callable[[VGpuId], str]:
        """Read on which GPU each held vGPU is; where nothing says so, that is the one in its ID."""
        return self._believed().gpu_of

    def resources(self) -> frozenset[str]:
        """Read as which resources something is held; none where nothing says so."""
        return frozenset(one.resource for one in self._believed().held.values())

    def _believed(self) -> Checkpoint:
        try:
            return self.read() or Checkpoint(1, {})
        except CheckpointError:
            return Checkpoint(1, {})
