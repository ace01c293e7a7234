"""A supervisor in its thread, and what it says."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from plugin.mps.answers import ServerState
from plugin.mps.daemon_supervisor import DaemonSupervisor
from tests.plugin.waiting import wait_until


@contextmanager
def running(supervisor: DaemonSupervisor) -> Iterator[DaemonSupervisor]:
    ending = Event()
    thread = Thread(target=supervisor.run, args=[ending])
    thread.start()
    try:
        yield supervisor
    finally:
        ending.set()
        thread.join()


def is_now(supervisor: DaemonSupervisor, state: str, why: str = "") -> None:
    wait_until(lambda: supervisor.report.state == state and why in supervisor.report.why)


def active(*pids: int) -> dict[int, ServerState]:
    """Give servers as a look sees them."""
    return dict.fromkeys(pids, "ACTIVE")


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == message]
