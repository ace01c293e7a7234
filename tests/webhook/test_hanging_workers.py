"""Which workers the master ends, with a clock of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from gunicorn.workers.workertmp import WorkerTmp

from webhook.master import Master
from webhook.server import Server


@dataclass
class Hanging:
    """A master with one worker, which says nothing by itself."""

    process: subprocess.Popen[bytes]
    tmp: WorkerTmp
    server: Server
    now: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.master = Master(self.server, clock=lambda: self.now)
        self.master.WORKERS = {self.process.pid: SimpleNamespace(tmp=self.tmp, aborted=False)}

    def heard(self, *, seconds_ago: float) -> None:
        then = time.monotonic() - seconds_ago
        os.utime(self.tmp.fileno(), (then, then))

    def look(self, *, after_seconds: float) -> None:
        self.now += after_seconds
        self.master.murder_workers()

    @property
    def is_aborted(self) -> bool:
        return bool(self.master.WORKERS[self.process.pid].aborted)


@pytest.fixture
def hanging(unstarted: Server) -> Iterator[Hanging]:
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
        closing(WorkerTmp(unstarted.cfg)) as tmp,
    ):
        try:
            yield Hanging(process, tmp, unstarted)
        finally:
            process.kill()


def test_a_worker_that_hangs_is_ended(hanging: Hanging) -> None:
    hanging.heard(seconds_ago=29)
    hanging.look(after_seconds=1)
    assert not hanging.is_aborted
    hanging.heard(seconds_ago=31)
    hanging.look(after_seconds=1)
    assert hanging.process.wait() == -signal.SIGABRT


def test_a_worker_that_was_not_heard_while_the_master_stood_still_is_kept(hanging: Hanging) -> None:
    hanging.look(after_seconds=1)
    hanging.heard(seconds_ago=41)
    hanging.look(after_seconds=40)
    assert not hanging.is_aborted
    hanging.look(after_seconds=1)
    assert not hanging.is_aborted


def test_so_is_one_before_whose_first_look_the_master_stood_still(hanging: Hanging) -> None:
    hanging.heard(seconds_ago=40)
    hanging.look(after_seconds=40)
    assert not hanging.is_aborted


def test_only_the_time_in_which_the_master_stood_still_does_not_count(hanging: Hanging) -> None:
    hanging.look(after_seconds=1)
    hanging.heard(seconds_ago=40 + 29)
    hanging.look(after_seconds=40)
    assert hanging.process.wait() == -signal.SIGABRT


def test_a_worker_that_was_heard_before_the_master_looks_again_has_no_more_time_than_others(hanging: Hanging) -> None:
    hanging.look(after_seconds=1)
    hanging.heard(seconds_ago=-40)
    hanging.look(after_seconds=40)
    assert hanging.tmp.last_update() <= hanging.now
