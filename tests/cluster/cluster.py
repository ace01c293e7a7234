"""The cluster of KUBECONFIG: kubectl, the node's own side where it can be reached, and how images get there."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.cluster.api import Api

T = TypeVar("T")
POLL_SECONDS = 0.1


class NoClusterError(Exception):
    """There is no cluster to run on, or none that these tests may change."""


@dataclass(frozen=True)
class Cluster:
    """A cluster that belongs to these tests while they run."""

    api: Api = field(default_factory=Api)

    def run(self, command: str, *, cwd: Path | None = None, stdin: str | None = None) -> str:
        """Run a command as a page has it, and give what it printed; the test fails if it does."""
        ran = self.attempt(command, cwd=cwd, stdin=stdin)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def attempt(
        self, command: str, *, cwd: Path | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that may fail; `gpu-share` is that of the environment that runs the tests."""
        words = shlex.split(command)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            words,
            cwd=cwd,
            input=stdin,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )


def eventually(look: Callable[[], T | None], *, seconds: float = 60, what: str = "") -> T:
    """Give the first true answer of *look*; the test fails if there is none in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or look}; last: {found!r}"
        time.sleep(POLL_SECONDS)
    return found


def state_directory() -> Path | None:
    """
    The directory of a cluster that runs as plain processes on this machine, beside its kubeconfig: `pids` lists them,
    `start-kubelet` starts the kubelet again, `containerd.sock` is its runtime. None where there is no such thing.
    """
    directory = Path(os.environ.get("KUBECONFIG", "/nowhere")).parent
    needed = ("pids", "start-kubelet", "containerd.sock")
    return directory if all((directory / name).exists() for name in needed) else None


def loader() -> list[str]:
    """
    Choose the command that brings an archive of images to the nodes.

    Raises:
        NoClusterError: If none fits.
    """
    if chosen := os.environ.get("GPU_SHARE_CLUSTER_LOAD"):
        return shlex.split(chosen)
    context = _kubectl("config", "current-context")
    for fits, command in (
        (state_directory() is not None, _ctr),
        (
            context.startswith("kind-"),
            lambda: ["kind", "load", "image-archive", "--name", context.removeprefix("kind-")],
        ),
        (context == "minikube", lambda: ["minikube", "image", "load"]),
        (Path("/run/k3s/containerd").exists(), lambda: ["k3s", "ctr", "images", "import"]),
    ):
        if fits:
            return command()
    raise NoClusterError(
        f"how do images get into {context}? Set GPU_SHARE_CLUSTER_LOAD to a command that gets an archive"
    )


def need_cluster() -> None:
    """
    See that there is a cluster, and that it has no gpu-share of its own.

    Raises:
        NoClusterError: If not.
    """
    if shutil.which("kubectl") is None:
        raise NoClusterError("there is no kubectl")
    if not os.environ.get("KUBECONFIG"):
        raise NoClusterError("KUBECONFIG names no cluster: the tests take one over, so they do not guess")
    if _kubectl("get", "--raw", "/readyz") != "ok":
        raise NoClusterError(f"the cluster of KUBECONFIG={os.environ['KUBECONFIG']} does not answer")
    if _kubectl("get", "namespace", "gpu-share", "--ignore-not-found", "-o", "name"):
        raise NoClusterError(
            "this cluster has a namespace gpu-share, and the tests would remove it: uninstall it first"
        )


def _ctr() -> list[str]:
    directory = state_directory()
    assert directory
    ctr = shutil.which("ctr") or str(directory / "bin" / "ctr")
    return [ctr, "-a", str(directory / "containerd.sock"), "-n", "k8s.io", "images", "import"]


def _kubectl(*words: str) -> str:
    command = ["kubectl", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return ran.stdout.strip()
