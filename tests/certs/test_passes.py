"""Pass after pass in one process."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from certs.passes import repeated

HANGING = "import time; from certs.passes import repeated; repeated({}, pause_seconds=1, longest_seconds=0.2)"


def passes(*codes: int) -> tuple[Callable[[], int], list[int]]:
    """Return passes that end with *codes*, and the codes that are left."""
    left = list(codes)
    return lambda: left.pop(0), left


def test_passes_are_made_until_one_fails() -> None:
    make_pass, left = passes(0, 0, 2, 0)
    assert repeated(make_pass, pause_seconds=0.01) == 2
    assert left == [0]


def test_a_signal_that_comes_in_a_pass_ends_the_process_after_it() -> None:
    def told_to_end() -> int:
        signal.raise_signal(signal.SIGTERM)
        return 0

    assert repeated(told_to_end, pause_seconds=60) == 0


def test_signals_are_as_they_were_afterwards() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    make_pass, _ = passes(1)
    repeated(make_pass, pause_seconds=60)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_pass_that_hangs_ends_the_process_with_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING.format("lambda: time.sleep(60)")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "gpu-share certs ensure: the pass has not ended for 0.2 s: is the API server slow or overloaded?\n"
    )


def test_a_pass_that_hangs_ends_the_process_though_nobody_reads_that_it_does() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x" * fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ))
    process = subprocess.Popen([sys.executable, "-c", HANGING.format("lambda: time.sleep(60)")], stderr=writing)
    try:
        assert process.wait(30) == 1
    finally:
        process.kill()
        os.close(reading)
        os.close(writing)


def test_where_no_thread_can_watch_a_pass_none_is_made_and_one_line_says_so() -> None:
    no_thread = "import threading\ndef none(_): raise RuntimeError('no threads left')\nthreading.Thread.start = none\n"
    made = HANGING.replace("repeated(", "code = repeated(") + "; raise SystemExit(code)"
    done = subprocess.run(
        [sys.executable, "-c", no_thread + made.format("lambda: 0")],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "gpu-share certs ensure: no pass is made without a watchdog: no threads left\n",
    )


def test_a_pass_that_ends_in_time_is_not_ended_later() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGING.format("iter((0, 1)).__next__")], timeout=30, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
