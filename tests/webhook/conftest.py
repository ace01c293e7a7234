import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certs.issuer import issue_to_directory
from policies.reading.store import PolicyStore
from tests.webhook import serving
from tests.webhook.serving import Server
from webhook.server import Server as Unstarted
from webhook.settings import Settings
from webhook.tls import ServingCertificate

UP_TO_HALF = b'share: {maximum: "0.5"}\n'


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ca.crt, tls.crt and tls.key, which a test leaves as they are."""
    directory = tmp_path_factory.mktemp("certificates")
    issue_to_directory(directory, dns_names=("localhost", "127.0.0.1"))
    return directory


@pytest.fixture(scope="session")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of policies that allow shares up to a half."""
    directory = tmp_path_factory.mktemp("policies")
    (directory / "_default.yaml").write_bytes(UP_TO_HALF)
    return directory


@pytest.fixture(scope="module")
def server(policies: Path, certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A webhook with one worker, shared by the tests of a module."""
    server = serving.start(policies, certificates, tmp_path_factory.mktemp("log") / "stderr")
    yield server
    server.interrupt()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start webhooks that end with the test."""
    started: list[Server] = []

    def start_one(policies: Path, certificates: Path, *, workers: int = 1, checks_time: bool = True) -> Server:
        log = tmp_path / f"stderr-{len(started)}"
        started.append(serving.start(policies, certificates, log, workers=workers, checks_time=checks_time))
        return started[-1]

    yield start_one
    for server in started:
        if server.process.poll() is None:
            server.interrupt()


@pytest.fixture
def unstarted(policies: Path, certificates: Path) -> Iterator[Unstarted]:
    """A server of two workers that nobody has started."""
    pair = certificates / "tls.crt", certificates / "tls.key"
    listener = socket.create_server(("127.0.0.1", 0))
    number = listener.fileno()
    yield Unstarted(
        Settings(policies, *pair, workers=2),
        listener=listener,
        store=PolicyStore(policies),
        certificate=ServingCertificate(*pair),
    )
    os.close(number)
