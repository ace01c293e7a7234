"""Pass after pass over the certificates, in a process that stays."""

import os
import signal
from collections.abc import Callable
from threading import Timer
from typing import Final

from program.front import FAILED, failed
from program.log import say_at_once

# Of the settle time, the rest is left for the changes of a pass to reach API servers and pods.
LONGEST_PASS_SECONDS: Final = 120.0

_ENDING = (signal.SIGTERM, signal.SIGINT)


def repeated(
    make_pass: Callable[[], int], *, pause_seconds: float, longest_seconds: float = LONGEST_PASS_SECONDS
) -> int:
    """
    Make a pass now and another after each pause, for the main thread.

    The exit code is that of the first pass that fails, since the kubelet starts a failed container again, later each
    time; it is 0 after SIGTERM or SIGINT, which end the pause. Each pass is *watched*.
    """
    blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        while True:
            if code := watched(make_pass, longest_seconds=longest_seconds):
                return code
            if signal.sigtimedwait(_ENDING, pause_seconds):
                return 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)


def watched(make_pass: Callable[[], int], *, longest_seconds: float = LONGEST_PASS_SECONDS) -> int:
    """Make a pass and give its exit code; one longer than *longest_seconds* ends the whole process, with 1."""
    # A thread, and no alarm: the kernel drops the signals that the first process of a container has no handler for, and
    # Python runs handlers only when a call into C returns.
    watchdog = Timer(longest_seconds, _give_up, (longest_seconds,))
    watchdog.daemon = True
    try:
        watchdog.start()
    except RuntimeError as error:
        return failed("certs ensure", f"no pass is made without a watchdog: {error}", FAILED)
    try:
        return make_pass()
    finally:
        watchdog.cancel()


def _give_up(longest_seconds: float) -> None:
    said = f"the pass has not ended for {longest_seconds:g} s: is the API server slow or overloaded?"
    say_at_once(f"gpu-share certs ensure: {said}\n".encode())  # nobody may read it
    os._exit(FAILED)
