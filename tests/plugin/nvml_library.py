"""The libnvidia-ml.so.1 of the tests: built, and told what happens on the node."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL
from pathlib import Path

import pytest

from plugin.gpus.nvml import Nvml, load_nvml

_SOURCE = Path(__file__).with_name("fake_nvml.c")
_COMPILER = shutil.which("gcc") or shutil.which("cc")


def compiler() -> str:
    if _COMPILER is None:
        pytest.skip("no C compiler: the NVML bindings have nothing to load, and there is no MPS control")
    return _COMPILER


def build(directory: Path, *options: str) -> Path:
    library = directory / "libnvidia-ml.so.1"
    command = [compiler(), "-Wall", "-Werror", "-shared", "-fPIC", *options, "-o", str(library), str(_SOURCE)]
    subprocess.run(command, check=True)
    return library


@contextmanager
def bound(library: Path) -> Iterator[Nvml]:
    """Give the real bindings over *library* alone: each test has one of its own, since a library remembers."""
    import pynvml  # noqa: PLC0415 - it has no types

    pynvml.nvmlLib = CDLL(str(library))
    pynvml._nvmlGetFunctionPointer_cache.clear()
    yield load_nvml()
    pynvml.nvmlLib = None
    pynvml._nvmlLib_refcount = 0
    pynvml._nvmlGetFunctionPointer_cache.clear()


class Script:
    """The file that the library reads; see fake_nvml_script.h for what can stand in it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "script"
        self.calls_path = directory / "calls"
        self._lines: list[str] = []
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        return {"FAKE_NVML_SCRIPT": str(self.path), "FAKE_NVML_CALLS": str(self.calls_path)}

    @property
    def calls(self) -> Counter[str]:
        """How often NVML was started and shut down, looked for GPUs and waited for events."""
        return Counter(self.calls_path.read_text().split()) if self.calls_path.exists() else Counter()

    def say(self, *lines: str) -> None:
        self._lines += lines
        self._write()

    def take_back(self, *lines: str) -> None:
        for line in lines:
            self._lines.remove(line)
        self._write()

    def _write(self) -> None:
        unseen = self.path.with_suffix(".new")
        unseen.write_text("".join(f"{line}\n" for line in self._lines))
        unseen.replace(self.path)
