"""Signals that are gunicorn's and not ours, and those that reach a whole process group."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.webhook.serving import Server, command, review_of, wait_for


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


def test_a_signal_that_reaches_a_worker_as_it_begins_ends_it(
    tmp_path: Path, policies: Path, certificates: Path
) -> None:
    log, count = tmp_path / "log", 8
    with log.open("wb") as stderr:
        process = subprocess.Popen(command(policies, certificates, workers=count), stderr=stderr)
    server = Server(process, log=log, ca=certificates / "ca.crt")
    ended: set[int] = set()
    until = time.monotonic() + 30
    try:
        while len(ended) < count:  # without a pause: the worker is to have just been forked
            for worker in {*server.workers} - ended:
                os.kill(worker, signal.SIGTERM)
                ended.add(worker)
            assert time.monotonic() < until
        wait_for(lambda: not ended & {*server.workers})
        assert server.stop() == 0
    finally:
        process.kill()
        process.wait()
