"""What the master does where the system lets it start no worker, and a worker where it can have no thread."""

import errno
import gc
import json
import logging
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from gunicorn.errors import HaltServer

from policies.reading.store import PolicyStore
from webhook import watch as watching
from webhook.master import Master
from webhook.server import Server
from webhook.tls import ServingCertificate
from webhook.worker import Worker

FIRST, SECOND, THIRD = 1 << 23, (1 << 23) + 1, (1 << 23) + 2  # PIDs that no process has
SAID = "worker not started"


class Forks:
    """A system that forks as told: to a PID, or not at all."""

    def __init__(self, *made: int | None) -> None:
        self._made = iter(made)
        self.tried = 0

    def __call__(self) -> int:
        self.tried += 1
        if (pid := next(self._made)) is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return pid


class Started:
    """A master of two workers with a clock of its own."""

    def __init__(self, server: Server) -> None:
        self.now = 100.0
        self.master = Master(server, clock=lambda: self.now)
        self.master.pid = os.getpid()
        self.master.WORKERS = {}

    def look(self, *, after_seconds: float = 1) -> set[int]:
        self.now += after_seconds
        self.master.manage_workers()
        return set(self.master.WORKERS)

    def close(self) -> None:
        for worker in self.master.WORKERS.values():
            worker.tmp.close()


@pytest.fixture
def started(unstarted: Server) -> Iterator[Started]:
    made = Started(unstarted)
    yield made
    made.close()
    gc.collect()  # what gunicorn leaves open of a worker that does not begin


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(one)["reason"] for one in caplog.records if one.getMessage() == SAID]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_that_cannot_be_forked_is_tried_again_and_ends_no_other(
    started: Started, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    forks = Forks(FIRST, None, None, SECOND)
    monkeypatch.setattr(os, "fork", forks)
    assert started.look() == {FIRST}
    for _ in range(4):
        assert started.look() == {FIRST}
    assert forks.tried == 2
    assert started.look() == {FIRST}
    assert started.look(after_seconds=5) == {FIRST, SECOND}
    assert forks.tried == 4
    (reason,) = said(caplog)
    assert reason == f"no process can be started ({os.strerror(errno.EAGAIN)}): tried again every 5 seconds"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_master_that_can_have_no_worker_from_the_beginning_ends_with_a_sentence(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", Forks(None))
    with pytest.raises(HaltServer) as halted:
        started.look()
    assert halted.value.reason == f"no process can be started ({os.strerror(errno.EAGAIN)}): make room for one"
    assert halted.value.exit_status == 1


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_that_could_not_begin_ends_no_other_and_the_last_one_ends_all(
    started: Started, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    forks = Forks(FIRST, SECOND, THIRD)
    monkeypatch.setattr(os, "fork", forks)
    assert started.look() == {FIRST, SECOND}
    ended = iter([(FIRST, Master.WORKER_BOOT_ERROR << 8), (0, 0), (SECOND, Master.WORKER_BOOT_ERROR << 8)])
    monkeypatch.setattr(os, "waitpid", lambda *_: next(ended))
    started.master.reap_workers()
    assert started.look() == {SECOND}
    assert started.look(after_seconds=5) == {SECOND, THIRD}
    assert said(caplog) == ["the last one could not begin, as the log says: tried again every 5 seconds"]
    started.master.WORKERS.pop(THIRD).tmp.close()
    with pytest.raises(HaltServer):
        started.master.reap_workers()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_worker_is_tried_at_every_look_where_no_other_serves(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", Forks(FIRST, None, None, None, SECOND, THIRD))
    assert started.look() == {FIRST}
    started.master.WORKERS.pop(FIRST).tmp.close()
    assert started.look() == set()
    assert started.look() == {SECOND, THIRD}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_master_that_ends_takes_no_note_of_workers_that_could_not_begin(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fork", Forks(FIRST, SECOND))
    assert started.look() == {FIRST, SECOND}
    ended = iter([(FIRST, Master.WORKER_BOOT_ERROR << 8), (SECOND, Master.WORKER_BOOT_ERROR << 8)])
    monkeypatch.setattr(os, "waitpid", lambda *_: next(ended, (0, 0)))
    monkeypatch.setattr(os, "kill", lambda *_: started.master.reap_workers())
    started.master.LISTENERS = []
    started.master.stop()
    assert started.master.WORKERS == {}


def test_a_worker_waits_for_a_thread_that_looks_for_new_files_and_says_so_at_once(
    policies: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    begun: list[object] = []

    class Counted(Thread):
        def start(self) -> None:
            begun.append(self)
            if len(begun) < 4:
                raise RuntimeError("can't start new thread")

    monkeypatch.setattr(watching, "Thread", Counted)
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    paused: list[int] = []
    certificate = ServingCertificate(certificates / "tls.crt", certificates / "tls.key")
    watching.watch(PolicyStore(policies), certificate, pause=lambda: paused.append(len(begun)))
    assert paused == [1, 2, 3]
    (told,) = (json.loads(line) for line in capfd.readouterr().err.splitlines() if "worker waits" in line)
    assert told["level"] == "warning"
    assert told["reason"] == "no thread can be started: tried again every second"


@pytest.fixture
def waiting(started: Started, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    master = started.master
    worker = Worker(1, os.getppid(), [], master.app, 15, master.cfg, logging.getLogger())
    monkeypatch.setattr(time, "sleep", lambda _: None)
    yield worker
    worker.tmp.close()


def test_a_worker_that_lacks_a_descriptor_for_its_loop_has_not_begun(
    waiting: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(select, "epoll", denied)
    with pytest.raises(OSError, match="Too many open files"):
        waiting.load_wsgi()
    assert not waiting.booted


def test_a_worker_that_waits_is_no_hanging_one(waiting: Worker) -> None:
    waiting.pause()
    assert waiting.tmp.last_update() <= time.monotonic()


@pytest.mark.parametrize("end", [lambda one: setattr(one, "alive", False), lambda one: setattr(one, "ppid", -1)])
def test_a_worker_that_waits_ends_when_it_is_told_to_or_its_master_is_gone(
    waiting: Worker, end: Callable[[Worker], None]
) -> None:
    end(waiting)
    with pytest.raises(SystemExit) as ended:
        waiting.pause()
    assert ended.value.code == 0
