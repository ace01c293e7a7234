"""Pods with a share that are created all the time, while something happens to gpu-share."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

from tests.cluster.api import Api
from tests.cluster.pods import Place, pod

_CLIENTS = 2


class Load:
    """Counts creations, and keeps the messages of those that failed."""

    def __init__(self, place: Place) -> None:
        self.created = 0
        self.failures: list[str] = []
        self._place, self._ends = place, threading.Event()

    def go_on(self, creations: int) -> None:
        """Return after so many more creations."""
        wanted = self.created + creations
        while self.created < wanted and not self.failures:
            time.sleep(0.01)

    def _run(self) -> None:
        api = Api()
        while not self._ends.is_set():
            try:
                answer = api.create(pod("0.2"), self._place.name, dry_run=True)
            except (OSError, HTTPException) as error:
                self.failures.append(repr(error))
                continue
            if not answer.ok:
                self.failures.append(answer.message)
            self.created += 1
        api.close()


@contextmanager
def load(place: Place) -> Iterator[Load]:
    """Create pods, as far as admission goes, until this ends."""
    running = Load(place)
    threads = [threading.Thread(target=running._run) for _ in range(_CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running._ends.set()
        for thread in threads:
            thread.join()
