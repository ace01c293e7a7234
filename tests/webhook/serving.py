"""The real webhook for a test: its process and its callers."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, which `ssl` has no name for


def wait_for(condition: Callable[[], object], *, seconds: float = 30) -> None:
    """Return as soon as *condition* holds; fail the test if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.01)


def review_of(share: str = "0.2", *, uid: str = "b4c9", **spec: Any) -> bytes:
    """An AdmissionReview of a pod with one container that asks for *share*."""
    container = {"name": "main", "image": "registry.example/team/model:1", **spec}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "model", "annotations": {"gpu-share": share}},
        "spec": {"containers": [container]},
    }
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "team",
        "operation": "CREATE",
        "object": pod,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


@dataclass
class Caller:
    """A client that keeps its connection."""

    connection: HTTPSConnection

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
        """Send one request; returns status and body."""
        self.connection.request(method, path, body)
        response = self.connection.getresponse()
        return response.status, response.read().decode()

    def allowed(self, body: bytes) -> bool:
        """Send a review and say whether the pod was admitted."""
        status, text = self.ask("POST", "/mutate", body)
        assert status == 200, text
        return bool(json.loads(text)["response"]["allowed"])


@dataclass
class Server:
    """A running `gpu-share webhook`."""

    process: subprocess.Popen[bytes]
    log: Path
    ca: Path
    port: int = 0
    checks_time: bool = True  # whether callers look at when the certificate is valid

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def workers(self) -> list[int]:
        """The process IDs of the workers."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def await_workers(self, count: int, *, without: list[int], seconds: float = 30) -> None:
        """Return when so many workers are there, and none of those *without* which it is to be, seen in one look."""

        def are_there() -> bool:
            now = self.workers
            return len(now) == count and not {*without} & {*now}

        wait_for(are_there, seconds=seconds)

    def lines(self, message: str | None = None) -> list[dict[str, Any]]:
        """The log so far, or its lines with *message*."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if message in (None, line["message"])]

    def all_lines(self, message: str | None = None) -> list[dict[str, Any]]:
        """The same of a running server with one worker, with all that it has logged until now."""
        uid = f"last-{time.monotonic_ns()}"
        with self.caller() as caller:
            caller.allowed(review_of(uid=uid))
        wait_for(lambda: any(line.get("uid") == uid for line in self.lines()))
        return [line for line in self.lines(message) if not str(line.get("uid", "")).startswith("last-")]

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        if not self.checks_time:
            context.verify_flags |= NO_CHECK_TIME
        return context

    @contextlib.contextmanager
    def caller(self) -> Iterator[Caller]:
        connection = HTTPSConnection("localhost", self.port, context=self.context(), timeout=15)
        with contextlib.closing(connection):
            yield Caller(connection)

    @contextlib.contextmanager
    def tcp(self) -> Iterator[socket.socket]:
        with socket.create_connection(("localhost", self.port), timeout=15) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the API server's are
            yield connection

    @contextlib.contextmanager
    def tls(self, context: ssl.SSLContext | None = None) -> Iterator[ssl.SSLSocket]:
        with (
            self.tcp() as connection,
            (context or self.context()).wrap_socket(connection, server_hostname="localhost") as secured,
        ):
            yield secured

    @contextlib.contextmanager
    def caller_of_each_worker(self) -> Iterator[list[Caller]]:
        """A kept connection to each worker; which one accepts is left to chance otherwise."""
        workers = self.workers
        with contextlib.ExitStack() as stack:
            callers = []
            for worker in workers:
                others = [other for other in workers if other != worker]
                for other in others:
                    os.kill(other, signal.SIGSTOP)
                callers.append(stack.enter_context(self.caller()))
                callers[-1].connection.connect()
                for other in others:
                    os.kill(other, signal.SIGCONT)
            yield callers

    def interrupt(self) -> int:
        """End the server at once, as Ctrl-C in a terminal does, and return its exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(20)

    def stop(self) -> int:
        """End the server as Kubernetes does, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


def command(policies: Path, certificates: Path, *, bind: str = "127.0.0.1:0", workers: int = 1) -> list[str]:
    """The command that starts a webhook."""
    made = [sys.executable, "-m", "gpu_share", "webhook", "--bind", bind]
    made += ["--policies", str(policies), "--workers", str(workers)]
    return [*made, "--cert", str(certificates / "tls.crt"), "--key", str(certificates / "tls.key")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def is_ready(server: Server) -> bool:
    assert server.process.poll() is None
    with contextlib.suppress(OSError), server.caller() as caller:
        return caller.ask("GET", "/readyz")[0] == 200
    return False


@contextlib.contextmanager
def served_with(stderr: int | None, policies: Path, certificates: Path) -> Iterator[Server]:
    """A webhook that logs to *stderr*, closed if it is None: without a log to read, it is known by its port."""
    port = free_port()
    words = command(policies, certificates, bind=f"127.0.0.1:{port}")
    if stderr is None:
        words = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
    process = subprocess.Popen(words, stderr=stderr, start_new_session=True)
    server = Server(process, log=Path(os.devnull), ca=certificates / "ca.crt", port=port)
    try:
        wait_for(lambda: is_ready(server))
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start(policies: Path, certificates: Path, log: Path, *, workers: int = 1, checks_time: bool = True) -> Server:
    """Start a webhook on a free port and wait until all of its workers are ready."""
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command(policies, certificates, workers=workers), stderr=stderr, start_new_session=True
        )
    server = Server(process, log=log, ca=certificates / "ca.crt", checks_time=checks_time)
    try:
        _wait_until_ready(server, workers)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return server


def _wait_until_ready(server: Server, workers: int) -> None:
    wait_for(lambda: server.process.poll() is not None or (len(server.workers) == workers and server.lines("serving")))
    assert server.process.poll() is None, server.log.read_text()
    server.port = int(server.lines("serving")[0]["address"].rpartition(":")[2])
    with server.caller_of_each_worker() as callers:
        assert [caller.ask("GET", "/readyz")[0] for caller in callers] == [200] * workers
