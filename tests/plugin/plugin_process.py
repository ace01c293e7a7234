"""A running `gpu-share plugin`, for tests of what an administrator starts, reads and ends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
ENDS_WITHIN_SECONDS = 10


class Plugin:
    """A running `gpu-share plugin`; its log is read as it comes."""

    def __init__(self, *arguments: str, before: tuple[str, ...] = (), **variables: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GPU_SHARE_")}
        self.process = subprocess.Popen(
            [*before, sys.executable, "-W", "error", "-m", "gpu_share", "plugin", *arguments],
            cwd=ROOT,
            env=environment | variables,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def _stderr(self) -> IO[str]:
        assert self.process.stderr is not None
        return self.process.stderr

    def logged(self, message: str) -> dict[str, Any]:
        """Read on to the line with that message."""
        for text in self._stderr:
            line: dict[str, Any] = json.loads(text)
            if line["message"] == message:
                return line
        raise AssertionError(f"it ended without saying {message!r}")

    def ends(self, *, by: int = 0) -> tuple[int, str]:
        """Send a signal, or none; the exit code and what was written since."""
        if by:
            self.process.send_signal(by)
        _, written = self.process.communicate(timeout=ENDS_WITHIN_SECONDS)
        return self.process.returncode, written

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._stderr.close()


Start = Callable[..., Plugin]
