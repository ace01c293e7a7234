"""Answers that must be whole in time: the timeout of a socket alone begins anew with each byte that comes."""

import time
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import Any

from urllib3 import PoolManager


def in_time(manager: PoolManager) -> PoolManager:
    """Have all that *manager* reads of an answer, its headers too, arrive before the timeout of the request is over."""
    pools = manager.pool_classes_by_scheme.items()
    manager.pool_classes_by_scheme = {scheme: _reading(pool) for scheme, pool in pools}
    return manager


def _reading(pool: Any) -> Any:
    connection = pool.ConnectionCls
    by_connection = {"ConnectionCls": type(connection.__name__, (connection,), {"response_class": _Answer})}
    return type(pool.__name__, (pool,), by_connection)


class _Answer(HTTPResponse):
    """An answer, from when its connection waits for it, with as much time as its socket has by then."""

    def __init__(self, sock: socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        seconds = sock.gettimeout()
        if seconds is not None:
            self.fp = BufferedReader(_Reader(self.fp.detach(), sock, deadline=time.monotonic() + seconds))


class _Reader(RawIOBase):
    def __init__(self, raw: RawIOBase, sock: socket, *, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
