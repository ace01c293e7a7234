from collections.abc import Callable
from threading import Event
from time import monotonic


def wait_until(condition: Callable[[], bool], *, timeout_seconds: float = 30.0) -> None:
    """Look until *condition* holds; for what nothing announces."""
    deadline = monotonic() + timeout_seconds
    pause = Event()
    while not condition():
        assert monotonic() < deadline, "it did not happen in time"
        pause.wait(0.005)
