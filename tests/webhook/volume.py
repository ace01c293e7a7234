"""The volumes that the webhook reads, as the kubelet mounts them."""

import shutil
from pathlib import Path


class Volume:
    """A ConfigMap or Secret as the kubelet mounts it: files are links through `..data`, which is swapped."""

    def __init__(self, directory: Path, files: dict[str, bytes]) -> None:
        self.directory = directory
        self._generation = 0
        directory.mkdir()
        self.swap(files)
        for name in files:
            (directory / name).symlink_to(Path("..data") / name)

    def swap(self, files: dict[str, bytes]) -> None:
        """Put other contents in place of all files, in one step."""
        before = self.directory / f"..{self._generation}"
        self._generation += 1
        now = self.directory / f"..{self._generation}"
        now.mkdir()
        for name, content in files.items():
            (now / name).write_bytes(content)
        (self.directory / "..new").symlink_to(now.name)
        (self.directory / "..new").replace(self.directory / "..data")
        shutil.rmtree(before, ignore_errors=True)
