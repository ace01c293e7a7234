"""Clients that connect to a daemon, and say nothing."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from plugin.mps.daemon import Daemon
from plugin.mps.silent_callers import call_of
from plugin.mps.supervisor import every
from plugin.mps.timing import TIMING
from tests.plugin.mps.conftest import UUID
from tests.plugin.waiting import wait_until

SILENT = "a client that said nothing kept an MPS daemon from all others: its connections are ended"


def connected(pipes: Path, gpu_uuid: str = UUID) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(pipes / gpu_uuid / "control"))
    connection.settimeout(30)
    return connection


def waits(daemon: Daemon) -> None:
    wait_until(lambda: all(call_of(pid) for pid in daemon.pids) and bool(daemon.pids))


@contextmanager
def looked(look: Callable[[], None]) -> Iterator[None]:
    """Look as often as `gpu-share mps` does, in a thread."""
    stopping = Event()
    thread = Thread(target=every, args=[TIMING.silence, look, look, stopping])
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
