"""Answers that several requests share: each is asked for by one of them, and kept for some seconds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")

_MOST: Final = 32  # different questions


@dataclass(slots=True)
class _Entry(Generic[T]):
    lock: Lock = field(default_factory=Lock)
    answers: list[T] = field(default_factory=list)  # none or one
    until: float = 0.0  # seconds of the monotonic clock


class Answers(Generic[K, T]):
    """The answers to the last few questions."""

    def __init__(self, ask: Callable[[K], T], *, seconds: float) -> None:
        """Keep each answer of *ask* for some *seconds*."""
        self._ask = ask
        self._seconds = seconds
        self._lock = Lock()
        self._entries: dict[K, _Entry[T]] = {}

    def get(self, question: K) -> T:
        """Answer; whoever asks the same meanwhile waits for the one answer."""
        with self._lock:
            entry = self._entries.pop(question, None) or _Entry()
            self._entries[question] = entry  # the last one now
            while len(self._entries) > _MOST:
                del self._entries[next(iter(self._entries))]
        with entry.lock:
            if not entry.answers or time.monotonic() > entry.until:
                entry.answers[:] = [self._ask(question)]
                entry.until = time.monotonic() + self._seconds
            return entry.answers[0]
