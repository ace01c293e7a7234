"""Programs that a test starts."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import AnyStr


@contextmanager
def ended(process: subprocess.Popen[AnyStr]) -> Iterator[subprocess.Popen[AnyStr]]:
    """Kill a program at the end, also where the test fails: Popen by itself would wait, and the test would hang."""
    with process:
        try:
            yield process
        finally:
            process.kill()
