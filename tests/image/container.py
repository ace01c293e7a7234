"""Run an image as the manifests do: with its own user, a read-only root, no privileges, no /tmp."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

SECONDS = 60

# In its own mount namespace, so that nothing is left on the machine. Every step replaces the one before it: the
# process that was started is the one in the container. $1: root, $2: user, then sources and targets, --, the command.
_CONTAINER = """
set -eu
root=$1 user=$2
shift 2
mount --bind -o ro "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir -m 1777 "$root/dev/shm"
for device in null zero urandom; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
while [ "$1" != -- ]; do
  mount --bind "$1" "$root$2"
  shift 2
done
shift
exec setpriv --no-new-privs chroot --userspec="$user" "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its files in a directory, and its configuration."""

    root: Path
    config: Mapping[str, Any]  # as the OCI image specification names things

    @property
    def uid(self) -> int:
        return int(self.config["User"].partition(":")[0])

    def command(self, *arguments: str, mounts: Mapping[str, Path] | None = None) -> list[str]:
        """Return the command that runs *arguments* in a container with *mounts*: directories here, by path there."""
        binds = []
        for target, source in (mounts or {}).items():
            (self.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)  # as runtimes do
            binds += [str(source), target]
        container = ["unshare", "--mount", "sh", "-c", _CONTAINER, "sh", str(self.root), self.config["User"], *binds]
        return [*container, "--", "/usr/bin/env", "-i", "HOME=/", *self.config["Env"], *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a container to its end."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=SECONDS, check=False)

    def start(self, *arguments: str, mounts: Mapping[str, Path], stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the image's entry point with *arguments*."""
        command = self.command(*self.config["Entrypoint"], *arguments, mounts=mounts)
        return subprocess.Popen(command, stderr=stderr, start_new_session=True)
