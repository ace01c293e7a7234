"""A tenant who is root, and keeps the socket of his GPU's daemon open: he can speak with it whatever its name is."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until

_LIMIT = "default_device_pinned_mem_limit 0"
_CEILING = "28G"  # of a maximum share of 0.2


def ask(path: str, command: str) -> str:
    """Ask a daemon as root of a container can."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(command.encode())
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(4096).decode().strip()


class KeptSocket:
    """The socket of the daemon of GPU A, with a ceiling, while a container holds a share there."""

    def __init__(self, control: Path, file: int) -> None:
        self.control = control
        self._path = f"/proc/self/fd/{file}"

    def raises_the_ceiling(self) -> None:
        ask(self._path, f"set_{_LIMIT} 143771M")

    def sees_it_set_again(self) -> None:
        wait_until(lambda: ask(self._path, f"get_{_LIMIT}") == _CEILING)


@contextmanager
def kept_socket(bench: Bench, start: Start) -> Iterator[KeptSocket]:
    bench.says("_default", 'share: {maximum: "0.2"}\n')
    bench.holds(A, vgpus=2)
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=2)):
        start()
        bench.is_now("ready", A, B)
        control = bench.pipes / A / "control"
        file = os.open(control, os.O_PATH)
        try:
            kept = KeptSocket(control, file)
            kept.sees_it_set_again()
            yield kept
        finally:
            os.close(file)
