"""`make soak`: 200,000 reviews under changes of policies, certificates and who reads the log; memory must not grow."""

import fcntl
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from certs.issuer import new_ca
from tests.bench.callers import measure, memory_mib
from tests.bench.pods import review_of
from tests.webhook.serving import Server, served_with
from tests.webhook.volume import Volume

_REVIEWS = 200_000
_ROUND = 10_000
_MOST_GROWTH = 1.05  # from the second quarter, when all that is kept has been made, to the last; medians
_PRIVATE = ("Private_Clean", "Private_Dirty")  # other processes that come and go have no part in it
_SIZES = (3_000, 8_000, 8_000, 60_000)  # bytes, round by round
_POLICIES = (b'share: {maximum: "0.5"}\n', b"share: {maximum: much}\n", b'share: {maximum: "1"}\n', b"mode: warn\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        server = _start(Path(name), stack)
        memory = [*_rounds(server)]
    quarter = len(memory) // 4
    settled, last = (statistics.median(part) for part in (memory[quarter : 2 * quarter], memory[-quarter:]))
    sys.stdout.write(f"{_REVIEWS} reviews, none lost; memory {settled:.1f} MiB, in the end {last:.1f} MiB\n")
    sys.exit(last > settled * _MOST_GROWTH)


def _rounds(server: Server) -> Iterator[float]:
    """Yield the memory after each round; a call that is lost raises."""
    for number in range(_REVIEWS // _ROUND):
        body = review_of(_SIZES[number % len(_SIZES)])
        kept = measure(server, body, connections=16, calls=_ROUND - _ROUND // 20)
        renewed = measure(server, body, connections=4, calls=_ROUND // 20, renewed=True)
        with server.caller() as caller:
            _, told = caller.ask("GET", "/readyz")
        memory = memory_mib(server, _PRIVATE)
        yield memory
        sys.stdout.write(
            f"{(number + 1) * _ROUND:7}: {memory:.1f} MiB, p99 {kept.p99_ms:.1f} ms, on new connections "
            f"{renewed.p99_ms:.1f} ms, {' | '.join(told.splitlines())[:80]}\n"
        )
        sys.stdout.flush()


def _start(directory: Path, stack: ExitStack) -> Server:
    authority = new_ca(now=datetime.now(UTC))

    def pair() -> dict[str, bytes]:
        made = authority.issue(("localhost",), now=datetime.now(UTC))
        return {"ca.crt": authority.pair.certificate_pem, "tls.crt": made.certificate_pem, "tls.key": made.key_pem}

    policies = Volume(directory / "policies", {f"team-{number}.yaml": _POLICIES[0] for number in range(100)})
    certificates = Volume(directory / "certificates", pair())
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    contents = itertools.cycle(_POLICIES)
    stack.enter_context(_repeated(lambda: policies.swap({f"team-{n}.yaml": next(contents) for n in range(101)}), 0.7))
    stack.enter_context(_repeated(lambda: certificates.swap(pair()), 1.3))
    stack.enter_context(_repeated(lambda: _read_for(reading, seconds=3), 3))
    return stack.enter_context(served_with(writing, policies.directory, certificates.directory))


def _read_for(descriptor: int, *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        os.read(descriptor, 65536)


@contextmanager
def _repeated(act: Callable[[], object], pause_seconds: float) -> Iterator[None]:
    """Do something again and again, with pauses."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(pause_seconds):
            act()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    over.set()


if __name__ == "__main__":
    main()
