import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from certs.issuer import issue_to_directory
from tests.webhook.serving import Caller, Load, Server, command, review_of, wait_for

Start = Callable[..., Server]


def test_sigterm_lets_a_request_in_flight_finish_and_keeps_no_idle_connection(
    policies: Path, certificates: Path, start: Start
) -> None:
    server = start(policies, certificates)
    body = review_of()
    head = b"POST /mutate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with server.tls() as in_flight, server.caller() as idle, server.caller() as used:
        for caller in (idle, used):
            assert caller.allowed(review_of())
        in_flight.sendall(head + body[:100])
        with server.caller() as caller:
            caller.ask("GET", "/healthz")  # the worker has seen the half request by the time it answers this
        server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        wait_for(lambda: refuses_connections(server))

        in_flight.sendall(body[100:])
        answer = b"".join(iter(lambda: in_flight.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"\r\nConnection: close\r\n" in answer
        assert b'"allowed":true' in answer

        used.connection.request("POST", "/mutate", review_of())
        response = used.connection.getresponse()
        assert (response.status, response.headers["Connection"]) == (200, "close")
        response.read()

        assert server.process.wait(10) == 0
        assert time.monotonic() - began < 6
    assert server.lines("Shutting down: Master")
    assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


def test_ctrl_c_ends_it_at_once_and_without_a_traceback(policies: Path, certificates: Path, start: Start) -> None:
    server = start(policies, certificates, workers=2)
    with server.caller() as idle:
        assert idle.allowed(review_of())
        assert server.interrupt() == 0
    assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_is_lost_while_workers_are_replaced_and_the_server_ends(
    policies: Path, certificates: Path, start: Start, workers: int
) -> None:
    server = start(policies, certificates, workers=workers)
    kept = threading.local()
    refused: list[None] = []

    def call_on_a_new_connection() -> None:
        if refused:
            return
        connection = HTTPSConnection("localhost", server.port, context=context, timeout=15)
        try:
            connection.connect()
        except ConnectionRefusedError:  # nobody listens any more: nothing was sent
            refused.append(None)
            return
        assert Caller(connection).allowed(review_of())
        connection.close()

    def call_on_a_kept_connection() -> None:
        if refused:
            return
        if not hasattr(kept, "connection"):
            kept.connection = HTTPSConnection("localhost", server.port, context=context, timeout=15)
        try:
            assert Caller(kept.connection).allowed(review_of())
        except ConnectionRefusedError:
            refused.append(None)

    context = server.context()
    with Load(call_on_a_new_connection, threads=3) as renewing, Load(call_on_a_kept_connection, threads=2) as keeping:
        for _ in range(2):
            before = server.workers
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: len(server.workers) == workers and not {*before} & {*server.workers}, seconds=20)  # noqa: B023
            made = len(renewing.seconds)
            wait_for(lambda: renewing.has_made(made + 50))  # noqa: B023
        assert not refused
        assert server.stop() == 0
        wait_for(lambda: refused)
    assert renewing.failures + keeping.failures == []
    assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


@pytest.mark.parametrize("milliseconds", [0, 5, 20, 50])
def test_a_signal_just_after_the_start_ends_it_soon(
    tmp_path: Path, policies: Path, certificates: Path, milliseconds: int
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(command(policies, certificates), stderr=stderr)
    wait_for(lambda: b'"serving"' in log.read_bytes())
    time.sleep(milliseconds / 1000)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert time.monotonic() - began < 4
    assert b"raceback" not in log.read_bytes()


def test_workers_end_when_their_master_is_killed(policies: Path, certificates: Path, start: Start) -> None:
    server = start(policies, certificates, workers=2)
    workers = server.workers
    with server.caller() as caller:
        assert caller.allowed(review_of())
    server.process.kill()
    server.process.wait()
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), seconds=15)
    assert refuses_connections(server)


def refuses_connections(server: Server) -> bool:
    with contextlib.suppress(ConnectionRefusedError), server.tcp():
        return False
    return True


def test_the_configuration_in_force_is_logged_at_the_start(server: Server, policies: Path, certificates: Path) -> None:
    (line,) = server.lines("serving")
    assert line["address"] == f"https://127.0.0.1:{server.port}"
    assert line["policies"] == str(policies)
    assert line["certificate"] == str(certificates / "tls.crt")
    assert (line["workers"], line["body_bytes"], line["idle_seconds"]) == (1, 8 * 1024 * 1024, 120)
    assert line["connections"] == 1024


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


def test_a_refusal_is_logged_with_its_code(server: Server) -> None:
    with server.caller() as caller:
        assert not caller.allowed(review_of("0.9", uid="denied"))
    (line,) = [line for line in server.all_lines("review") if line["uid"] == "denied"]
    assert (line["decision"], line["code"]) == ("denied", "ShareAboveMaximum")


def run(**options: object) -> subprocess.CompletedProcess[str]:
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    webhook = [sys.executable, "-m", "gpu_share", "webhook", *given]
    return subprocess.run(webhook, capture_output=True, text=True, timeout=20, check=False)


def encrypted_key(folder: Path) -> None:
    key = serialization.load_pem_private_key((folder / "tls.key").read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"password")
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize(
    ("spoil", "names"),
    [
        pytest.param(lambda folder: (folder / "tls.crt").unlink(), ["--cert", "tls.crt", "no such file"], id="no cert"),
        pytest.param(lambda folder: (folder / "tls.key").unlink(), ["--key", "tls.key", "no such file"], id="no key"),
        pytest.param(lambda folder: (folder / "tls.crt").write_text("x"), ["--cert", "tls.crt", "PEM"], id="bad cert"),
        pytest.param(lambda folder: (folder / "tls.key").write_text("x"), ["--key", "tls.key", "PEM"], id="bad key"),
        pytest.param(lambda folder: (folder / "tls.key").write_bytes(b"\xff\0"), ["--key", "PEM"], id="binary key"),
        pytest.param(lambda folder: (folder / "tls.crt").write_bytes(b"\xff\0"), ["--cert", "PEM"], id="binary cert"),
        pytest.param(
            lambda folder: replaced(folder / "tls.key", os.mkfifo), ["--key", "tls.key", "a named pipe"], id="a pipe"
        ),
        pytest.param(
            lambda folder: replaced(folder / "tls.crt", lambda path: path.symlink_to("/dev/zero")),
            ["--cert", "tls.crt", "a device"],
            id="a device",
        ),
        pytest.param(
            lambda folder: os.truncate(folder / "tls.crt", 1 << 40), ["--cert", "tls.crt", "1024 KiB"], id="endless"
        ),
        pytest.param(encrypted_key, ["--key", "tls.key", "password"], id="encrypted key"),
        pytest.param(
            lambda folder: (folder / "tls.crt").write_bytes((folder / "ca.crt").read_bytes()),
            ["--key", "tls.key", "not the key of", "tls.crt"],
            id="another's key",
        ),
    ],
)
def test_a_pair_that_cannot_be_served_stops_the_start_with_one_line(
    tmp_path: Path, policies: Path, spoil: Callable[[Path], object], names: list[str]
) -> None:
    issue_to_directory(tmp_path, dns_names=("localhost",))
    spoil(tmp_path)
    ended = run(policies=policies, cert=tmp_path / "tls.crt", key=tmp_path / "tls.key", bind="127.0.0.1:0")
    assert ended.returncode == 2
    assert_one_line(ended.stderr, names)


def assert_one_line(stderr: str, names: list[str]) -> None:
    assert stderr.startswith("gpu-share webhook: ")
    assert stderr.count("\n") == 1
    assert [name for name in names if name not in stderr] == []


@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param(None, ["--policies: ", "missing", "No such file"], id="no folder"),
        pytest.param(
            {"_default.yaml": "share: {maximum: 7.5.1}"},
            ["--policies: ", "missing/_default.yaml:1: share", "7.5.1"],
            id="broken",
        ),
    ],
)
def test_policies_that_cannot_be_used_stop_the_start_with_one_line(
    tmp_path: Path, certificates: Path, files: dict[str, str] | None, names: list[str]
) -> None:
    folder = tmp_path / "missing"
    for name, text in (files or {}).items():
        folder.mkdir()
        (folder / name).write_text(text)
    ended = run(policies=folder, cert=certificates / "tls.crt", key=certificates / "tls.key", bind="127.0.0.1:0")
    assert ended.returncode == 2
    assert_one_line(ended.stderr, names)


@pytest.mark.parametrize("bind", ["8443", "localhost:", ":8443", "localhost:x", "localhost:70000", "localhost:²"])
def test_an_address_that_is_none_is_bad_usage(policies: Path, certificates: Path, bind: str) -> None:
    ended = run(policies=policies, cert=certificates / "tls.crt", key=certificates / "tls.key", bind=bind)
    assert ended.returncode == 2
    assert_one_line(ended.stderr, ["--bind must be HOST:PORT", f'"{bind}"'])


@pytest.mark.parametrize(("bind", "reason"), [("", "in use"), ("192.0.2.1:0", "assign"), ("no.invalid:0", "not known")])
def test_an_address_that_cannot_be_had_is_a_failure(
    server: Server, policies: Path, certificates: Path, bind: str, reason: str
) -> None:
    bind = bind or f"127.0.0.1:{server.port}"
    ended = run(policies=policies, cert=certificates / "tls.crt", key=certificates / "tls.key", bind=bind)
    assert ended.returncode == 1
    assert_one_line(ended.stderr, [f"--bind {bind}", reason])
