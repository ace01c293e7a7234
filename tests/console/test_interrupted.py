"""Whoever interrupts a command, or has a cluster that is slow, does not wait for all of a long list."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from console.api_server import ApiServer, UnseenError
from console.objects import Pod
from program.kubeconfig import load, settings_from_environment
from tests.console.conftest import Served
from tests.console.objects import cluster, gpu, pod, state
from tests.console.stand_in import Reply, StandIn
from tests.docs.pages import ROOT
from tests.programs import ended

PODS = "/api/v1/pods"


class Slow(StandIn):
    """One that gives a pod each third of a second."""

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self.began = Event()

    def reply(self, path: str, query: dict[str, list[str]]) -> Reply:
        if path == PODS:
            self.began.set()
            time.sleep(0.3)
        return super().reply(path, query)


def slow() -> Slow:
    on = Slow(**vars(cluster(state(gpu()))))
    on.lists[PODS] = [pod(f"a-{n:02}") for n in range(60)]
    on.page = 1
    return on


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have programs that are started interruptible, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_command_while_a_list_is_read(served: Served) -> None:
    on = slow()
    command = [sys.executable, "-m", "gpu_share", "top", "--kubeconfig", str(served(on)), "--once"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    piped = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    with ended(piped) as ran:
        assert on.began.wait(20)
        ran.send_signal(signal.SIGINT)
        _, said = ran.communicate(timeout=30)
    assert said.strip() == b"gpu-share: interrupted"
    assert ran.returncode == 1
    assert on.asked.count(PODS) < 30


def test_a_list_that_takes_too_long_is_not_read_to_its_end(served: Served) -> None:
    on = slow()
    settings = settings_from_environment()
    load(settings, [served(on)], "")
    with pytest.raises(UnseenError, match=r"no whole list within 0\.2 s, but 1 objects: ask for one namespace"):
        list(ApiServer(settings, listing_seconds=0.2).all(Pod, PODS))
    assert on.asked.count(PODS) == 1
