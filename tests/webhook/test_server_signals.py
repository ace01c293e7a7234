"""Signals that are gunicorn's and not ours, and those that reach a whole process group."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.webhook.serving import Server, review_of, wait_for


def test_sigusr2_starts_no_second_master(start: Callable[..., Server], policies: Path, certificates: Path) -> None:
    server = start(policies, certificates)
    before = server.workers
    server.process.send_signal(signal.SIGUSR2)
    wait_for(lambda: server.lines("SIGUSR2 ignored"))
    assert server.workers == before
    assert server.stop() == 0


def test_signals_that_reach_the_whole_process_group_cost_no_request(
    start: Callable[..., Server], policies: Path, certificates: Path
) -> None:
    server = start(policies, certificates)
    (worker,) = server.workers
    with server.caller() as caller:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH):
            os.kill(worker, number)
            assert caller.allowed(review_of())
    assert server.workers == [worker]
