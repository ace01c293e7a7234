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

from click.testing import Result

from tests.console.objects import cluster, denial, gpu, pending, pod, state, tenant
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


def test_what_is_wrong_is_on_the_screen_however_small_it_is(served: Callable[[StandIn], Path]) -> None:
    on = [state(*[gpu(tenant(f"p{n}{i}", 2), index=i) for i in range(8)], on=f"gpu-{n}") for n in range(6)]
    known = cluster(*on, pods=(pending("late", "0.9", "no room"),))
    known.lists["/api/v1/events"] = [denial("gpu-share: no")]
    with _live(served(known), lines=12) as (_, terminal):
        screen = _read_until(terminal, b"more lines: --node, -n or --once").decode()
    assert "6 nodes, 48 GPUs" in screen
    assert "1 Pending, 1 denied" in screen
    assert screen.index("resnet-5d: denied 9 times") < screen.index("late is Pending: no room") < screen.index("GPU 0")
    of_all = 2 + 6 + 48 + 1 + 49  # what is wrong, nodes, GPUs, and under a heading tenants and what waits
    assert f"{of_all - 10} more lines: --node, -n or --once" in screen


def test_a_screen_that_has_room_for_all_of_it_leaves_nothing_out(served: Callable[[StandIn], Path]) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"), pending("late", "0.9", "no room")))
    with _live(served(known), lines=12) as (_, terminal):
        assert "more line" not in _read_until(terminal, b"late is Pending: no room").decode()


def test_it_leaves_the_screen_as_it_was_where_it_is_ended(served: Callable[[StandIn], Path]) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    with _live(served(known)) as (ran, terminal):
        _read_until(terminal, b"resnet-0")
        ran.send_signal(signal.SIGTERM)
        _read_until(terminal, _LEAVES)
        assert ran.wait(timeout=20) == 128 + signal.SIGTERM


def test_a_dumb_terminal_is_shown_it_once(served: Callable[[StandIn], Path]) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    with _live(served(known), kind="dumb") as (ran, terminal):
        _read_until(terminal, b"Running")
        assert ran.wait(timeout=20) == 0


def test_a_number_of_seconds_that_is_none_is_a_sentence(asked: Callable[..., Result]) -> None:
    ran = asked(cluster(state(gpu())), "top", "--every-seconds", "nan")
    assert ran.exit_code == 2
    assert "nan is not a number of seconds" in ran.stderr


@contextmanager
def _live(kubeconfig: Path, *, lines: int = 40, kind: str = "xterm") -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run it on a terminal, of which one end is yielded."""
    terminal, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 120, 0, 0))
    command = [sys.executable, "-m", "gpu_share", "top", "--kubeconfig", str(kubeconfig), "--every-seconds", "0.5"]
    # Whoever runs tests may say another size of the terminal, by variables.
    environment = os.environ | {"TERM": kind, "LINES": str(lines), "COLUMNS": "120"}
    ran = subprocess.Popen(command, stdin=screen, stdout=screen, env=environment)
    os.close(screen)
    try:
        yield ran, terminal
    finally:
        ran.kill()
        ran.wait()
        os.close(terminal)


def _read_until(terminal: int, expected: bytes) -> bytes:
    shown, deadline = b"", time.monotonic() + 30
    while expected not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 65536)
    return shown
