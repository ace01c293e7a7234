"""The page of `gpu-share console`, as a user of the cluster opens it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.cluster import eventually
from tests.console.page.visitor import Visitor, words


@contextmanager
def console() -> Iterator[Visitor]:
    """Serve it until the end, by the kubeconfig of the tests."""
    command = [sys.executable, "-m", "gpu_share", "console", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        origin, _, token = ran.stdout.readline().split()[-1].partition("/?token=")
        visitor = Visitor(origin, token)
        visitor.enter()
        yield visitor
        ran.send_signal(signal.SIGINT)
        assert ran.wait(20) == 0


def page_says(visitor: Visitor, path: str, text: str) -> str:
    """Wait until a page says something, and give all that it says."""

    def look() -> str | None:
        found = words(visitor.text(path))
        return found if text in found else None

    return eventually(look, what=f"{path} of the page says {text}")
