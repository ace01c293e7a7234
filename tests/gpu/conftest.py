import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plugin.errors import DiscoveryError
from plugin.gpus.discovery import discover
from plugin.gpus.gpu import Gpu
from plugin.gpus.nvml import load_nvml
from tests.gpu.node import Node, running

_NEEDED = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "unshare", "nsenter", "setpriv")


@pytest.fixture(scope="module", autouse=True)
def alone() -> Iterator[None]:
    """Keep all other processes that run these tests from the GPU meanwhile: its modes and daemons are the machine's."""
    with Path(tempfile.gettempdir(), "gpu-share-tests-of-a-gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    return _first(instance=False)


@pytest.fixture(scope="session")
def instance() -> Gpu:
    """Give a MIG instance."""
    return _first(instance=True)


def _first(*, instance: bool) -> Gpu:
    try:
        found = next(gpu for gpu in discover(load_nvml()).gpus if bool(gpu.instance) is instance)
    except DiscoveryError as error:
        pytest.skip(f"no GPU here, so this question to real MPS stays open: {error}")
    except StopIteration:
        pytest.skip(f"no {'MIG instance' if instance else 'GPU outside MIG mode'} here, so this question stays open")
    missing = [program for program in _NEEDED if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"a GPU, but no MPS to ask: needs root and {', '.join(missing) or 'nothing else'}")
    return found


@contextmanager
def _directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))  # short, for sockets
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def directory(gpu: Gpu) -> Iterator[Path]:  # noqa: ARG001 - where there is no GPU, nothing is made
    with _directory() as path:
        yield path


@pytest.fixture(scope="module")
def node(gpu: Gpu) -> Iterator[Node]:
    """Give a GPU under MPS whose daemon sets no default limit: every tenant could have all of it."""
    with _directory() as path, running(gpu, path) as node:
        yield node
