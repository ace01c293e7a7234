"""`gpu-share top` on a terminal: anew until it is interrupted, and the screen as it was afterwards."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.console.objects import cluster, gpu, pod, state, tenant
from tests.console.stand_in import Reply, StandIn

_LEAVES = b"\x1b[?1049l"  # the alternate screen


def test_it_shows_the_cluster_anew_until_it_is_interrupted(served: Callable[[StandIn], Path]) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    with _live(served(known)) as (ran, terminal):
        _read_until(terminal, b"resnet-0")
        known.lists["/api/v1/pods"].append(pod("another"))
        _read_until(terminal, b"another")
        ran.send_signal(signal.SIGINT)
        _read_until(terminal, _LEAVES)
        assert ran.wait(timeout=20) == 0


def test_it_rests_longer_than_it_looked(served: Callable[[StandIn], Path]) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    ((part, said),) = known.states.items()
    asked: list[float] = []

    def say_slowly() -> Reply:
        asked.append(time.monotonic())
        time.sleep(0.4)
        return said()

    known.states[part] = say_slowly
    with _live(served(known)) as (_, terminal):
        _read_until(terminal, b"resnet-0")
        known.lists["/api/v1/pods"].append(pod("another"))
        _read_until(terminal, b"another")
    assert asked[1] - asked[0] > 5 * 0.4, "0.5 seconds were asked for"


@contextmanager
def _live(kubeconfig: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run it on a terminal, of which one end is yielded."""
    terminal, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [sys.executable, "-m", "gpu_share", "top", "--kubeconfig", str(kubeconfig), "--every-seconds", "0.5"]
    ran = subprocess.Popen(command, stdin=screen, stdout=screen, env=os.environ | {"TERM": "xterm"})
    os.close(screen)
    try:
        yield ran, terminal
    finally:
        ran.kill()
        ran.wait()
        os.close(terminal)


def _read_until(terminal: int, expected: bytes) -> None:
    shown, deadline = b"", time.monotonic() + 30
    while expected not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
