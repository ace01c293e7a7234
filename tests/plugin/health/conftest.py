import logging
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from plugin.gpus.nvml import Nvml
from tests.plugin.health.reconciler_bench import Bench, Lines
from tests.plugin.health.watched_node import WatchedNode
from tests.plugin.nvml_library import Script, bound, build


class StartNode(Protocol):
    def __call__(self, **options: Any) -> WatchedNode: ...


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        kind: build(tmp_path_factory.mktemp("nvml"), *options) for kind, options in (("new", ()), ("old", ("-DOLD",)))
    }


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script(tmp_path)
    for name, value in script.environment.items():
        monkeypatch.setenv(name, value)
    return script


@pytest.fixture
def nvml(libraries: dict[str, Path], tmp_path: Path, script: Script) -> Iterator[Nvml]:  # noqa: ARG001 - it is read
    with bound(Path(shutil.copy(libraries["new"], tmp_path / "new.so"))) as nvml:
        yield nvml


@pytest.fixture
def old_nvml(libraries: dict[str, Path], tmp_path: Path, script: Script) -> Iterator[Nvml]:  # noqa: ARG001
    with bound(Path(shutil.copy(libraries["old"], tmp_path / "old.so"))) as nvml:
        yield nvml


@pytest.fixture
def start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[StartNode]:
    """Watch a node until the test ends."""
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:

        def start(**options: Any) -> WatchedNode:
            return stack.enter_context(WatchedNode(state_dir=tmp_path, **options).running())

        yield start


@pytest.fixture
def bench(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Bench:
    caplog.set_level(logging.INFO)
    return Bench(tmp_path)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Give what was logged: each message, and its GPU or reason."""
    return lambda: [(one.message, vars(one).get("gpu") or vars(one)["reason"]) for one in caplog.records]
