"""
What callers who mean harm make the webhook keep, all at once, as the memory of its container counts it.

Bodies in wide characters, which take most memory for their bytes, are reviewed while a crowd sends more than is read,
and others wait with requests that take longest.
"""

import json
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from tests.bench.callers import memory_mib
from tests.bench.worst_pods import widest
from tests.bench.worst_texts import mixed
from tests.webhook.reviews import call
from tests.webhook.serving import Server, start
from webhook.settings import MAX_BODY_BYTES

_UNREAD, _DEAR, _WIDE = 1450, 400, 4  # callers
_PIECE = b'{"a":"' + b"x" * 16_000
_PIECES = 12  # of each unread body, or as many as the kernel takes
_ROUNDS = 3
_SECONDS = 4  # of a round, in which the requests are answered
_PRIVATE = ("Private_Clean", "Private_Dirty")


class _Kept(NamedTuple):
    processes_mib: float
    kernel_mib: float  # what has come, and nobody has read


def measure(policies: Path, certificates: Path, directory: Path) -> Iterator[str]:
    """Measure a webhook with two workers, as the manifests have it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = start(policies, certificates, directory / "crowd.log", workers=2)
    try:
        before = memory_mib(server, _PRIVATE)
        with _watched(server) as seen:
            for _ in range(_ROUNDS):
                _crowd(server)
        most, after = max(seen, key=sum), memory_mib(server, _PRIVATE)
    finally:
        server.stop()
    yield (
        f"a hostile crowd, 2 workers: {before:.0f} MiB before, {sum(most):.0f} at most, of which the kernel has "
        f"{most.kernel_mib:.0f} unread, {after:.0f} after"
    )


def _crowd(server: Server) -> None:
    bodies = (json.dumps(call(on), ensure_ascii=False).encode() for _, on in widest(MAX_BODY_BYTES - 120 * 1024))
    wide = max((one for one in bodies if len(one) <= MAX_BODY_BYTES), key=len)
    ((_, on),) = islice(mixed(12_000), 2, 3)
    dear = json.dumps(call(on)).encode()
    with ExitStack() as stack:
        callers = [stack.enter_context(_connected(server)) for _ in range(_WIDE + _UNREAD + _DEAR)]
        wides, unread, dears = callers[:_WIDE], callers[_WIDE:-_DEAR], callers[-_DEAR:]
        for one in wides:
            _send(one, _head(wide), wide[:-1000])
        for one in dears:
            _send(one, _head(dear), dear)
        for one in unread:
            one.settimeout(0)
            _send(one, _head(b" " * MAX_BODY_BYTES), *[_PIECE] * _PIECES)
        for one in wides:
            _send(one, wide[-1000:])
        time.sleep(_SECONDS)


def _connected(server: Server) -> ssl.SSLSocket:
    plain = socket.create_connection(("localhost", server.port), timeout=15)
    return server.context().wrap_socket(plain, server_hostname="localhost")


def _head(body: bytes) -> bytes:
    return b"POST /mutate HTTP/1.1\r\nHost: l\r\nContent-Length: %d\r\n\r\n" % len(body)


def _send(caller: ssl.SSLSocket, *pieces: bytes) -> None:
    """Send as much as is taken: who holds too much is given up."""
    with suppress(OSError):
        for piece in pieces:
            caller.sendall(piece)


@contextmanager
def _watched(server: Server) -> Iterator[list[_Kept]]:
    """Look at the memory again and again."""
    seen, over = [_Kept(0, 0)], threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            with suppress(OSError):  # a worker that ends
                seen.append(_Kept(memory_mib(server, _PRIVATE), _unread_mib(server.port)))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yield seen
    over.set()
    thread.join()


def _unread_mib(port: int) -> float:
    """Add up what waits in the kernel for the sockets of a port: the second half of the fifth field of each line."""
    lines = chain.from_iterable(Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    fields = (line.split() for line in lines)
    waiting = (int(one[4].partition(":")[2], 16) for one in fields if one[1].endswith(f":{port:04X}"))
    return sum(waiting) / 2**20
