"""A kubelet that ends each connection: it costs no memory, and nothing stands between the log's lines of JSON."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.plugin.plugin_process import Plugin, Start

# Frames of HTTP/2 (RFC 9113): no settings, and an end of the connection for an internal error.
_SETTINGS = bytes.fromhex("000000 04 00 00000000")
_GOAWAY = bytes.fromhex("000008 07 00 00000000 00000000 00000002")
_PEAK_KIB = 256 * 1024  # four times what a plugin takes


@pytest.fixture
def sent_away(directory: Path) -> Iterator[None]:
    """Be a kubelet that ends each connection at once, and says so."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "kubelet.sock"))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    # The plugin first looks whether somebody answers, and says nothing.
                    if connection.recv(65536):
                        connection.sendall(_SETTINGS + _GOAWAY)

        thread = Thread(target=serve)
        thread.start()
        yield
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.usefixtures("sent_away")
def test_a_kubelet_that_ends_each_connection_costs_no_memory_and_leaves_the_log_in_json(start: Start) -> None:
    plugin = start("--simulate", "2xH200")
    plugin.logged("not registered, trying again")
    assert _peak_kib(plugin) < _PEAK_KIB
    _, written = plugin.ends(by=signal.SIGTERM)
    assert all(json.loads(line)["message"] for line in written.splitlines())


def _peak_kib(plugin: Plugin) -> int:
    status = Path(f"/proc/{plugin.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
