"""The real webhook while its certificates rotate: 28 days pass every other tick, and clients keep connecting."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Self

from certs.rotation import Settings
from policies.contract import CA_SECRET, SERVING_SECRET
from tests.certs.simulated_cluster import SimulatedCluster
from tests.webhook.serving import NO_CHECK_TIME, Server, review_of, start
from tests.webhook.volume import Volume

TICK_SECONDS = 0.05
# One pass when the serving certificate is due, and one when the new one has settled: up to ten of each in a second.
TICKS = (timedelta(days=28), timedelta(minutes=10))
SETTINGS = Settings(names=("localhost",), settle=TICKS[1])  # a change reaches every client within one tick
REVIEW = review_of()


@dataclass
class Rotating:
    """A webhook, what API servers trust now and trusted a tick ago, and what clients met."""

    server: Server
    volume: Volume
    cluster: SimulatedCluster
    trusted: list[ssl.SSLContext]  # the newest last; the one before is what slow API servers still use
    threads: int = 4
    connections: int = 0
    served: set[bytes] = field(default_factory=set)
    cas: set[bytes] = field(default_factory=set)
    seen: set[bytes] = field(default_factory=set)  # serving certificates that clients were shown
    failures: list[BaseException] = field(default_factory=list)
    seconds: float = 0

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._ticks = 0
        self._began_at = [0] * self.threads  # tick at which each client's connection began
        self._lock = threading.Lock()
        targets = [lambda number=number: self._call(number) for number in range(self.threads)]
        self._running = [threading.Thread(target=target) for target in (self._rotate, *targets)]
        self._began = time.monotonic()
        for thread in self._running:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._running:
            thread.join()
        self.seconds = time.monotonic() - self._began

    def _rotate(self) -> None:
        try:
            while not self._over.wait(TICK_SECONDS):
                self._tick()
        except BaseException as failure:  # noqa: BLE001 - the test reports it
            self.failures.append(failure)

    def _tick(self) -> None:
        self.cluster.pass_time(TICKS[self._ticks % 2])
        self.cluster.run()
        self.trusted = [self.trusted[-1], trusting(self.cluster.bundle)]
        self._ticks += 1
        # No client uses the CA bundle of two ticks ago: that is what the settle time is for.
        while min(self._began_at) < self._ticks and not self._over.is_set():
            time.sleep(0.001)
        self.volume.swap(files(self.cluster))
        self.served.add(self.cluster.secret(SERVING_SECRET)["tls.crt"])
        self.cas.add(self.cluster.secret(CA_SECRET)["ca.crt"])

    def _call(self, number: int) -> None:
        while not self._over.is_set():
            self._began_at[number] = self._ticks
            # Half of the clients have read the CA bundle of this tick, half still have the one before.
            context = self.trusted[number % 2]
            try:
                self._connect(context)
            except Exception as failure:  # noqa: BLE001 - likewise
                self.failures.append(failure)
        self._began_at[number] = 1 << 60

    def _connect(self, context: ssl.SSLContext) -> None:
        with self.server.tls(context) as connection:
            shown = connection.getpeercert(binary_form=True) or b""
            if self.connections % 10 == 0:
                self._review(connection)
        with self._lock:
            self.connections += 1
            self.seen.add(shown)

    def _review(self, connection: ssl.SSLSocket) -> None:
        asking = HTTPConnection("localhost")
        asking.sock = connection
        asking.request("POST", "/mutate", REVIEW)
        assert asking.getresponse().status == 200


def trusting(bundle: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=bundle.decode())
    context.verify_flags |= NO_CHECK_TIME  # the simulated time is not that of OpenSSL's clock
    return context


def files(cluster: SimulatedCluster) -> dict[str, bytes]:
    return {"ca.crt": cluster.bundle, **cluster.secret(SERVING_SECRET)}


@contextmanager
def rotating(directory: Path, policies: Path) -> Iterator[Rotating]:
    """Start a webhook whose Secret and CA bundle passes replace all the time."""
    # None is valid by the webhook's own clock, not even the first: beside a valid one, all others would have to wait.
    cluster = SimulatedCluster(settings=SETTINGS, now=datetime.now(UTC) + timedelta(days=400))
    cluster.run()
    volume = Volume(directory / "secret", files(cluster))
    server = start(policies, volume.directory, directory / "log", checks_time=False)
    try:
        trusted = trusting(cluster.bundle)
        with Rotating(server, volume, cluster, [trusted, trusted]) as running:
            yield running
    finally:
        server.stop()
