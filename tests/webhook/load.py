"""Callers without a pause."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Load:
    """Threads that call without a pause, and what they met."""

    call: Callable[[], object]
    threads: int = 4
    seconds: list[float] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._running = [threading.Thread(target=self._run) for _ in range(self.threads)]
        for thread in self._running:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._running:
            thread.join()

    def has_made(self, calls: int) -> bool:
        return len(self.seconds) >= calls

    def _run(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            try:
                self.call()
            except Exception as failure:  # noqa: BLE001 - whatever it is, the test wants to see it
                self.failures.append(failure)
            self.seconds.append(time.perf_counter() - began)
