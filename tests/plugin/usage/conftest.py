"""A node whose processes are measured over the real bindings."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plugin.usage.measured_node import Node

SOURCE = Path(__file__).parents[1] / "mps" / "fake_modes.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the NVML bindings have nothing to load")
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(path), str(SOURCE)], check=True)
    return path


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(tmp_path)
    monkeypatch.setenv("FAKE_MODES", str(made.nvml))
    return made
