"""Threads beside the work of a program."""

from collections.abc import Callable
from signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals
from threading import Thread


def start_beside(run: Callable[[], None], *, name: str) -> None:
    """
    Run something in a thread that gets no signals and does not keep the process alive.

    Signals are for the threads that were there before, and for those that block them in order to wait.

    Raises:
        RuntimeError: If no more threads can be had.
    """
    before = pthread_sigmask(SIG_BLOCK, valid_signals())
    try:
        Thread(target=run, name=name, daemon=True).start()
    finally:
        pthread_sigmask(SIG_SETMASK, before)
