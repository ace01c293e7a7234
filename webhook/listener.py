"""The socket that callers connect to, from its beginning to an end at which no caller is lost."""

import ctypes
import resource
import socket
import struct
from contextlib import suppress
from typing import Final

from program.closing import limit_untaken
from program.listening import ALL_HOSTS, family_and_host
from webhook import settings as limits
from webhook.settings import Settings, StartError

_SO_ATTACH_FILTER: Final = 26  # of Linux; the socket module has no name for it

# Of the segments that come to a listening socket, drop those that begin a connection: SYN without ACK. As instructions
# of the classic packet filter, (code, jump if true, jump if false, operand), on what begins with the TCP header.
_DROP_SYN: Final = (
    (0x30, 0, 0, 13),  # load the byte of the flags
    (0x54, 0, 0, 0x12),  # of them SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # then nothing of it
    (0x06, 0, 0, 0xFFFF),  # else all of it
)


def listen(settings: Settings) -> socket.socket:
    """
    Listen on the address of *settings*, here rather than in gunicorn, which tries for five seconds.

    Raises:
        StartError: If the address is malformed, unknown, not ours or taken.
    """
    host, port = settings.address
    try:
        family, host = family_and_host(host)
        is_of_both = host == ALL_HOSTS
        made = socket.create_server((host, port), family=family, backlog=limits.BACKLOG, dualstack_ipv6=is_of_both)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(
            f"--bind {settings.bind}: {reason}: give another address or port, or end the process that has it",
            exit_code=1,
        ) from None
    # For all connections: what the kernel keeps for a caller counts as our memory, and can be megabytes otherwise.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.RECEIVE_BUFFER_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.SEND_BUFFER_BYTES)
    limit_untaken(made, limits.UNTAKEN_SECONDS)
    return made


def widen(accepted: socket.socket) -> None:
    """Let a caller send more before we have read it. The kernel goes by what it told the caller first, unless told."""
    with suppress(OSError):  # it has gone, or the kernel will not: then it takes more round trips
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.WIDE_BUFFER_BYTES)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, limits.WIDE_BUFFER_BYTES)


def begin_nothing_more(listener: socket.socket) -> None:
    """
    Let no other connection begin; those that have begun can still be accepted.

    Else a caller could be connected between the last `accept` and the end of the socket, and would be reset. A caller
    that comes now tries again after a second, as TCP does, and finds that nobody listens.
    """
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
    program = ctypes.create_string_buffer(code, len(code))
    with suppress(OSError):  # then one caller in thousands is reset, as everywhere else
        listener.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program))
        )


def most_connections() -> int:
    """Allow as many open files as the system lets us, and return the number of connections of a worker."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = limits.MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, limits.MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return min(limits.MAX_CONNECTIONS, allowed // 2)
