"""Callers over TLS in processes of their own, so that none waits for another one's interpreter; and what they saw."""

import multiprocessing
import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tests.webhook.serving import Server

if TYPE_CHECKING:
    from queue import Queue

_MOST_PROCESSES = 4
_HEAD = (
    b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: gpu-share-webhook.gpu-share.svc:443\r\n"
    b"User-Agent: kube-apiserver-admission\r\nContent-Length: %d\r\nAccept: application/json, */*\r\n"
    b"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One load on one server."""

    cpu_us: float  # of master and workers, per call
    p50_ms: float
    p99_ms: float


def measure(
    server: Server, body: bytes, *, connections: int, calls: int, per_second: float = 0, renewed: bool = False
) -> Measured:
    """Make *calls*, each connection one after the other; *renewed*: each on a connection of its own."""
    processes = min(connections, _MOST_PROCESSES)
    call = partial(
        _call,
        server.port,
        _HEAD % len(body) + body,
        connections=connections // processes,
        calls=calls // processes,
        seconds_between=processes / per_second if per_second else 0.0,
        renewed=renewed,
    )
    results: Queue[list[float] | str] = multiprocessing.Queue()  # type: ignore[assignment] # has the same methods
    running = [multiprocessing.Process(target=_report, args=(call, results)) for _ in range(processes)]
    before = cpu_seconds(server)
    for process in running:
        process.start()
    made = [results.get() for _ in running]
    spent = cpu_seconds(server) - before
    for process in running:
        process.join()
    if lost := [one for one in made if isinstance(one, str)]:
        raise RuntimeError(f"calls were lost: {', '.join(lost)}")
    seconds = sorted(one for each in made if not isinstance(each, str) for one in each)
    count = len(seconds)
    return Measured(spent / count * 1e6, seconds[count // 2] * 1e3, seconds[count * 99 // 100] * 1e3)


def processes_of(server: Server) -> list[int]:
    """Master and workers."""
    return [server.process.pid, *server.workers]


def cpu_seconds(server: Server) -> float:
    """By the scheduler's clock, of all threads."""
    threads = (thread for pid in processes_of(server) for thread in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((thread / "schedstat").read_text().split()[0]) / 1e9 for thread in threads)


def memory_mib(server: Server, kinds: tuple[str, ...] = ("Pss",)) -> float:
    """Memory of master and workers, of those *kinds* by the kernel's names; without others, each one's part of all."""
    found = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in processes_of(server))
    lines = (line for text in found for line in text.splitlines() if line.partition(":")[0] in kinds)
    return sum(int(line.split()[1]) for line in lines) / 1024


def _report(call: partial[Iterator[float]], results: "Queue[list[float] | str]") -> None:
    try:
        results.put([*call()])
    except Exception as error:  # noqa: BLE001 - whatever it is, who measures wants to know
        results.put(repr(error))


def _call(
    port: int, request: bytes, *, connections: int, calls: int, seconds_between: float, renewed: bool
) -> Iterator[float]:
    """Yield the seconds of each call."""
    if renewed:
        for _ in range(calls):
            began = time.perf_counter()
            with closing(_connect(port)) as connection:
                connection.sendall(request)
                _read(connection)
            yield time.perf_counter() - began
        return
    waiting = selectors.DefaultSelector()
    began_at: dict[ssl.SSLSocket, float] = {}
    for _ in range(connections):
        waiting.register(_connect(port), selectors.EVENT_READ)
    for key in [*waiting.get_map().values()]:
        first = cast("ssl.SSLSocket", key.fileobj)
        _send(first, request, began_at)
    due = time.perf_counter()
    made = 0
    while made < calls:
        for key, _ in waiting.select():
            connection = cast("ssl.SSLSocket", key.fileobj)
            _read(connection)
            yield time.perf_counter() - began_at[connection]
            made += 1
            due += seconds_between
            time.sleep(max(0.0, due - time.perf_counter()) if seconds_between else 0)
            _send(connection, request, began_at)


def _send(connection: ssl.SSLSocket, request: bytes, began_at: dict[ssl.SSLSocket, float]) -> None:
    began_at[connection] = time.perf_counter()
    connection.sendall(request)


def _connect(port: int) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # what is measured is the server
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(connection)


def _read(connection: ssl.SSLSocket) -> None:
    received = connection.recv(65536)
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    assert b" 200 " in head[:16], head
    while len(body) < length:
        body += _more(connection)


def _more(connection: ssl.SSLSocket) -> bytes:
    piece = connection.recv(65536)
    assert piece, "the server has closed the connection"
    return piece
