import gc
import importlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

# How long one example takes says how busy the machine is.
settings.register_profile("gpu-share", deadline=None)
settings.load_profile("gpu-share")

_LONGEST_NAME = 100
_ROOT = Path(__file__).parent.parent


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its argument: each process of a run keeps the names of all tests, and sends them."""
    return argname if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME else None


def pytest_collection(session: pytest.Session) -> None:
    """
    Let each process of a run import the tests from another one on: what one has compiled, the others read.

    In a clean checkout all of them would compile all tests, at the same time.
    """
    gc.disable()  # what is collected stays until the end
    if process := getattr(session.config, "workerinput", None):
        files = sorted(path for given in session.config.args for path in Path(given).rglob("test_*.py"))
        first = len(files) * int(process["workerid"].removeprefix("gw")) // process["workercount"]
        for path in files[first:] + files[:first]:
            with suppress(Exception, pytest.skip.Exception):  # it is told of where it is collected
                importlib.import_module(".".join(path.absolute().relative_to(_ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
