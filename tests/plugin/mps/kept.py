"""A keeper in its thread, and what it says."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from plugin.mps.daemon_supervisor import Keeper
from tests.plugin.waiting import wait_until


@contextmanager
def running(keeper: Keeper) -> Iterator[Keeper]:
    ending = Event()
    thread = Thread(target=keeper.run, args=[ending])
    thread.start()
    try:
        yield keeper
    finally:
        ending.set()
        thread.join()


def is_now(keeper: Keeper, state: str, why: str = "") -> None:
    wait_until(lambda: keeper.report.state == state and why in keeper.report.why)


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == message]
