"""What the webhook logs of reviews, and that none waits for a log that nobody reads or that has no room."""

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


def closed() -> None:
    pass


@pytest.mark.parametrize("opens", [full, without_reader, closed])
def test_reviews_and_reloads_go_on_where_no_line_can_be_written(
    tmp_path: Path, certificates: Path, opens: Callable[[], int | None]
) -> None:
    volume = Volume(tmp_path / os.fsdecode(b"policies\xff"), UP_TO_HALF)
    stderr = opens()
    with served_with(stderr, volume.directory, certificates) as server:
        if stderr is not None:
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


def test_each_review_is_a_line_of_its_names_and_nothing_of_the_pod(server: Server) -> None:
    marker = "Xyzzy-17"
    with server.caller() as caller:
        env = [{"name": f"{marker}_NAME", "value": marker}]
        body = review_of(uid="of-this-test", env=env, args=[f"--token={marker}"], image=f"{marker.lower()}/x:1")
        assert caller.allowed(body)
        for bad in (body[:-1], body.replace(b'"args": [', b'"args": {"a": ').replace(b"]", b"}"), b"\xff" + body):
            assert caller.ask("POST", "/mutate", bad)[0] == 400
    with server.tls() as connection:  # more body than announced is read as the next request
        connection.sendall(b"POST /mutate HTTP/1.1\r\nHost: l\r\nContent-Length: 2\r\n\r\n{}" + body + b"\r\n\r\n")
        wait_for(lambda: not connection.recv(65536))
    (line,) = [line for line in server.all_lines("review") if line["uid"] == "of-this-test"]
    assert 0 < line.pop("milliseconds") < 1000
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "message": "review",
        "uid": "of-this-test",
        "namespace": "team",
        "pod": "model",
        "policy": "_default",
        "decision": "granted",
        "code": "",
        "shares": {"main": "0.2"},
    }
    assert marker.lower() not in server.log.read_text().lower()


def test_a_denial_is_logged_with_its_code(server: Server) -> None:
    with server.caller() as caller:
        assert not caller.allowed(review_of("0.9", uid="denied"))
    (line,) = [line for line in server.all_lines("review") if line["uid"] == "denied"]
    assert (line["decision"], line["code"]) == ("denied", "ShareAboveMaximum")
