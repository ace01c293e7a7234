"""
The end of a TCP connection that leaves nothing in the kernel.

What a caller does not take the kernel keeps after `close`, for minutes, as memory of the process's container.
"""

import fcntl
import socket
import struct
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_TCP_CLOSE: Final = 7  # of tcp_states.h; what was not taken still counts there, although it is gone
_LOOK_SECONDS: Final = 0.02


def limit_untaken(listener: socket.socket, seconds: float) -> None:
    """
    Have the kernel end the connections of *listener* once the other side has acknowledged nothing for so many seconds.

    That holds for those that were closed as well, and for a caller who says for so long that it has no room.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def untaken_bytes(connection: socket.socket) -> int:
    """
    Count the bytes that were sent and are not acknowledged; the end that `shutdown` sends is one of them.

    Raises:
        OSError: If *connection* is closed, or not TCP's.
    """
    if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CLOSE:
        return 0
    (count,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
    return int(count)


def close(connection: socket.socket) -> None:
    """End *connection* at once; it is reset where something was not acknowledged, be it the end alone."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        if untaken_bytes(connection):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with suppress(OSError):
        connection.close()


def close_when_taken(connection: socket.socket, *, may_wait: Callable[[], bool]) -> None:
    """End *connection* once all is acknowledged, or when it may wait no longer; by a thread that may."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while untaken_bytes(connection) and may_wait():
            time.sleep(_LOOK_SECONDS)
    close(connection)
