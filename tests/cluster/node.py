"""A node from within: a privileged pod that sees its processes and files, on any cluster."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cluster import Cluster, eventually, state_directory
from tests.cluster.image import NAME
from tests.cluster.pods import Place, container, pod

_PIPES = "/tmp/nvidia-mps"
_STATE = "/run/gpu-share"
# What gpu-share leaves on a node when it is uninstalled, by docs/operations.md
_LEFT = (
    f"/host{_PIPES} /host{_STATE} /host/var/lib/gpu-share /host/var/log/gpu-share /host/run/cdi/gpu-share_*.json"
    " /host/var/lib/kubelet/plugins/gpu-share.dev"
)

# The first process of a container has the process ID 1 there; process IDs begin anew at some time, start times do not.
_KILL = """\
import os, pathlib, re, signal, sys
found = []
for path in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        line, status, stat = ((path / name).read_text() for name in ("cmdline", "status", "stat"))
    except OSError:
        continue
    if re.search(sys.argv[1], line.replace(chr(0), " ")) and re.search(r"NSpid:.*\\t1$", status, re.M):
        found.append((int(stat.rpartition(")")[2].split()[19]), int(path.name)))
os.kill(max(found)[1], signal.SIGKILL)
"""


@dataclass(frozen=True)
class Node:
    """One node of the cluster."""

    place: Place
    name: str  # of the pod by which it is reached

    @classmethod
    @contextmanager
    def reached(cls, cluster: Cluster, *, name: str = "node") -> Iterator["Node"]:
        """Start the pod that reaches the node, for as long as this lasts."""
        place = Place.make(cluster, "test-node")
        view = container(
            "main", NAME, command=["sleep", "infinity"], securityContext={"privileged": True, "runAsUser": 0}
        )
        view["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
        volumes = [{"name": "host", "hostPath": {"path": "/"}}]
        place.started(pod(None, view, name=name, hostPID=True, volumes=volumes))
        yield cls(place, name)

    def run(self, script: str) -> str:
        """Run a line of shell on the node, whose files are under /host."""
        return self.place.cluster.run(f"kubectl -n {self.place.name} exec -i {self.name} -- sh -s", stdin=script)

    def kill(self, pattern: str) -> None:
        """Send SIGKILL to a container's first process, the newest of those whose command line has *pattern*."""
        self.run(f"exec python3 - {shlex.quote(pattern)} <<'END'\n{_KILL}END\n")

    def clean(self) -> None:
        """Remove the files that an uninstalled gpu-share leaves."""
        self.run(f"umount /host{_PIPES}/shm 2>/dev/null; rm -rf {_LEFT}")


@contextmanager
def shared_pipes() -> Iterator[None]:
    """Have what MPS mounts in be shared mounts, as all of a node is under systemd, where this machine is the node."""
    if state_directory() is None:
        yield
        return
    shell = ["/bin/sh", "-ec"]
    for path in (_PIPES, _STATE):
        subprocess.run([*shell, f"mkdir -p {path}; mount --bind {path} {path}; mount --make-shared {path}"], check=True)
    try:
        yield
    finally:
        subprocess.run([*shell, f"umount --lazy {_PIPES} {_STATE}"], check=True)


@dataclass(frozen=True)
class Kubelet:
    """The kubelet of a cluster that runs as plain processes on this machine."""

    directory: Path

    @classmethod
    def here(cls) -> "Kubelet | None":
        found = state_directory()
        return cls(found) if found else None

    def stop(self) -> None:
        """Kill it, and return once it is gone."""
        pid = self._pid()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not _runs(pid), what="the kubelet has ended")

    def run(self) -> None:
        """Start it, if it does not run, and write down its process ID for whoever ends the cluster."""
        if _runs(self._pid()):
            return
        script = f"setsid {self.directory}/start-kubelet >>{self.directory}/log/kubelet.log 2>&1 </dev/null & echo $!"
        pid = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
        with (self.directory / "pids").open("a") as pids:
            pids.write(f"{pid} kubelet\n")

    def kill_containers(self) -> None:
        """End every container, as a machine that stops does."""
        ctr = [str(self.directory / "bin" / "ctr"), "-a", str(self.directory / "containerd.sock"), "-n", "k8s.io"]
        tasks = subprocess.run([*ctr, "tasks", "ls", "-q"], capture_output=True, text=True, check=True).stdout.split()
        for task in tasks:
            subprocess.run([*ctr, "tasks", "kill", "-s", "SIGKILL", task], capture_output=True, check=False)

    def _pid(self) -> int:
        lines = [line.split() for line in (self.directory / "pids").read_text().splitlines()]
        return int([pid for pid, name in lines if name == "kubelet"][-1])


def _runs(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
