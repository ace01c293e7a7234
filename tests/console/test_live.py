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
from threading import Event

import pytest
from click.testing import Result

from tests.console.objects import cluster, denial, gpu, pending, pod, state, tenant
from tests.console.stand_in import Reply, StandIn

_ENTERS = b"\x1b[?1049h"  # the alternate screen
_LEAVES = b"\x1b[?1049l"
_CURSOR = b"\x1b[?25h"  # is shown


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


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGQUIT])
def test_it_leaves_the_screen_as_it_was_where_it_is_ended(
    served: Callable[[StandIn], Path], ending: signal.Signals
) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    with _live(served(known)) as (ran, terminal):
        _read_until(terminal, b"resnet-0")
        ran.send_signal(ending)
        assert _CURSOR in _read_until(terminal, _LEAVES)
        assert ran.wait(timeout=20) == 128 + ending


def test_one_that_is_stopped_leaves_the_screen_and_has_it_again_where_it_goes_on(
    served: Callable[[StandIn], Path],
) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    with _live(served(known)) as (ran, terminal):
        _read_until(terminal, b"resnet-0")
        for _ in range(2):
            ran.send_signal(signal.SIGTSTP)
            assert _CURSOR in _read_until(terminal, _LEAVES)
            _wait_until_stopped(ran)
            ran.send_signal(signal.SIGCONT)
            _read_until(terminal, _ENTERS)
            _read_until(terminal, b"resnet-0")
        ran.send_signal(signal.SIGINT)
        _read_until(terminal, _LEAVES)
        assert ran.wait(timeout=20) == 0


def test_one_that_is_stopped_while_it_looks_does_not_wait_for_the_answer(served: Callable[[StandIn], Path]) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    ((part, said),) = known.states.items()
    is_asked, may_answer = Event(), Event()

    def say_late() -> Reply:
        is_asked.set()
        may_answer.wait(60)
        return said()

    with _live(served(known)) as (ran, terminal):
        _read_until(terminal, b"resnet-0")
        known.states[part] = say_late
        assert is_asked.wait(30)
        ran.send_signal(signal.SIGTSTP)
        _read_until(terminal, _LEAVES)
        _wait_until_stopped(ran)
        may_answer.set()
        known.lists["/api/v1/pods"].append(pod("another"))
        ran.send_signal(signal.SIGCONT)
        _read_until(terminal, b"another")


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
    # In a group of its own: what is in one that nobody could start again is not stopped.
    ran = subprocess.Popen(command, stdin=screen, stdout=screen, env=environment, process_group=0)
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


def _wait_until_stopped(ran: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 30
    while os.waitid(os.P_PID, ran.pid, os.WSTOPPED | os.WNOHANG) is None:
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.02)
