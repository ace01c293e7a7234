"""The processes of the demo: our own commands, each with a log, none of which outlives it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_SECONDS = 15.0


class DemoError(Exception):
    """The demo cannot go on; the message says why."""


@contextmanager
def running(log: Path, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run our own command, and end it."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command_of(*arguments), stderr=output, stdout=output, env=environment() | variables
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_line(process: subprocess.Popen[bytes], log: Path, message: str) -> dict[str, Any]:
    """
    Read the log up to a message.

    Raises:
        DemoError: If it does not come.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        text = log.read_text(errors="replace")
        for line in text.splitlines():
            if line.startswith("{") and line.endswith("}") and json.loads(line).get("message") == message:
                found: dict[str, Any] = json.loads(line)
                return found
        if process.poll() is not None:
            raise DemoError(f"{log.stem} ended at once: {text.strip()}")
        time.sleep(0.02)
    raise DemoError(f"{log.stem} did not start within {START_SECONDS:.0f} s")


def environment() -> dict[str, str]:
    """What the demo's processes inherit: no option of theirs, or they would do something else than the demo shows."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GPU_SHARE_")}


def command_of(*arguments: str) -> list[str]:
    """Write our own command."""
    return [sys.executable, "-m", "gpu_share", *arguments]
