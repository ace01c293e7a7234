"""The real webhook whose log nobody reads, or whose log has no room."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.webhook.serving import Server, review_of, served_with, wait_for
from tests.webhook.volume import Volume

UP_TO_HALF = {"_default.yaml": b'share: {maximum: "0.5"}\n'}


def ready(server: Server) -> list[str]:
    with server.caller() as caller:
        status, text = caller.ask("GET", "/readyz")
    assert status == 200
    return text.splitlines()


def test_no_review_waits_for_a_log_that_nobody_reads(policies: Path, certificates: Path) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with served_with(writing, policies, certificates) as server:
        os.close(writing)
        with server.caller() as caller:
            for _ in range(5000):  # far more than pipe and queue hold
                assert caller.allowed(review_of())
        (head, told) = ready(server)
        assert head == "ready"
        assert told.startswith("log lines lost: ")
        assert server.stop() == 0
    os.close(reading)


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def without_reader() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("opens", [full, without_reader])
def test_reviews_and_reloads_go_on_where_no_line_can_be_written(
    tmp_path: Path, certificates: Path, opens: Callable[[], int]
) -> None:
    volume = Volume(tmp_path / "policies", UP_TO_HALF)
    stderr = opens()
    with served_with(stderr, volume.folder, certificates) as server:
        os.close(stderr)
        with server.caller() as caller:
            for _ in range(50):
                assert caller.allowed(review_of())
            wait_for(lambda: len(ready(server)) == 2)
            assert "lost: " in ready(server)[1]
            volume.swap({"_default.yaml": b"share: {maximum: much}\n"})
            wait_for(lambda: len(ready(server)) == 3)
            volume.swap({"_default.yaml": b'share: {maximum: "1"}\n'})
            wait_for(lambda: caller.allowed(review_of("0.7")))
        assert server.stop() == 0
