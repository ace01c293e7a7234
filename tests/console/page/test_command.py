"""`gpu-share console` as a process: what it prints, and how it ends."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from urllib3 import PoolManager

from tests.console.page.clusters import lively
from tests.console.stand_in import StandIn

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def started(served: Callable[[StandIn], Path]) -> Iterator[Started]:
    """Start the command with a stand-in."""
    with ExitStack() as stack:

        def start(known: StandIn, *words: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-m", "gpu_share", "console", "--kubeconfig", str(served(known)), *words]
            made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            stack.enter_context(made)
            stack.callback(made.kill)
            return made

        yield start


def address(of: "subprocess.Popen[str]") -> str:
    assert of.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}", of.stdout.readline())
    assert found
    return found[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_the_page_is_and_ends_when_it_is_told(started: Started, number: signal.Signals) -> None:
    ran = started(lively(), "--port", "0")
    where = address(ran)
    with PoolManager() as pool:
        entered = pool.request("GET", where, redirect=False)
        cookie = entered.headers["Set-Cookie"].partition(";")[0]
        page = pool.request("GET", where.partition("?")[0], headers={"Cookie": cookie})
    assert b"resnet-train-0" in page.data
    ran.send_signal(number)
    _, errors = ran.communicate(timeout=20)
    assert (ran.returncode, errors) == (0, "")


def test_it_ends_at_once_while_the_api_server_hangs(started: Started) -> None:
    known = lively()
    known.drips = True
    ran = started(known, "--port", "0")
    where = address(ran)
    with PoolManager() as pool:
        entered = pool.request("GET", where, redirect=False)
        cookie = entered.headers["Set-Cookie"].partition(";")[0]
        page = pool.request("GET", where.partition("?")[0], headers={"Cookie": cookie})
    assert b"looking at the cluster" in page.data
    ran.send_signal(signal.SIGINT)
    _, errors = ran.communicate(timeout=4)
    assert (ran.returncode, errors) == (0, "")


def test_a_port_that_is_taken_is_one_sentence(started: Started) -> None:
    first = started(lively(), "--port", "0")
    port = address(first).partition("/?")[0].rpartition(":")[2]
    second = started(lively(), "--port", port)
    out, errors = second.communicate(timeout=20)
    assert (second.returncode, out) == (1, "")
    why = f"port {port} of 127.0.0.1: Address already in use: choose another by --port, or 0 for any"
    assert errors == f"gpu-share console: {why}\n"
