"""TLS on a socket that never waits, where a caller cannot keep us busy with records in which nothing is for us."""

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from program import closing
from webhook.client_hello import ClientHellos
from webhook.settings import MAX_EMPTY_BYTES, MAX_SESSIONS, SEND_BUFFER_BYTES, WIDE_BUFFER_BYTES

# At most, of what has come and of what is sent, at a time. A connection keeps as much for as long as it lives.
PIECE_BYTES: Final = 8 * 1024
_RECORD_PIECES: Final = 3  # of the longest record, which is a little more than 16 KiB
_SLOW_PIECE_BYTES: Final = 1024
_SLOW_SECONDS: Final = 0.00025  # of the processor, for a piece: ten times the usual; key updates take 16 ms
_KERNEL_BYTES: Final = 2 * (WIDE_BUFFER_BYTES + SEND_BUFFER_BYTES)

_ARRIVED: Final = memoryview(bytearray(PIECE_BYTES))  # of all connections: what is in it is used at once


class SecuredSocket:
    """
    The server's side. What cannot go on raises BlockingIOError until something comes, SSLWantWriteError until it goes.

    OpenSSL reads from memory and not from the socket: there it would go on for as long as a caller sends key updates,
    and nobody else would have a turn. Other errors are OSErrors.
    """

    __slots__ = (
        "_clock",
        "_empty_bytes",
        "_has_begun",
        "_hellos",
        "_incoming",
        "_outgoing",
        "_socket",
        "_tls",
        "_unsent",
        "is_slow",
    )

    def __init__(self, accepted: socket.socket) -> None:
        self._socket = accepted
        self._has_begun = False
        self._unsent: bytes | memoryview = b""  # of the records that were made
        self._empty_bytes = 0  # that have come since there was something for us in them
        self.is_slow = False  # because of what the caller sends: others have their turn after every small piece of it
        # To read the processor's clock takes 2 µs: it is asked after a piece was slow by this one.
        self._clock: Callable[[], float] = time.monotonic

    def begin(self, new_context: Callable[[], ssl.SSLContext]) -> bool:
        """
        Begin TLS, once the first byte is here; False if the caller has gone before.

        Until then a caller costs a socket and no TLS state; a TCP probe never sends one.
        """
        if not self._socket.recv(1, socket.MSG_PEEK):
            return False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = new_context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._hellos: ClientHellos | None = ClientHellos()  # until OpenSSL has got the last of them
        self._has_begun = True
        return True

    @property
    def context(self) -> ssl.SSLContext:
        """That TLS began with."""
        return self._tls.context

    @property
    def has_more(self) -> bool:
        """Whether something may be here that epoll does not tell of."""
        return bool(self._incoming.pending or self._tls.pending())

    def shake_hands(self) -> None:
        """Do the handshake, as far as it goes."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send_made()
                if held := self._admitted(b""):
                    self._incoming.write(held)
                elif not self._take():
                    raise ConnectionResetError("the caller has gone in the handshake") from None
            except ssl.SSLError:
                self._send_if_possible()
                raise
            else:
                self._empty_bytes = 0
                self._send_made()
                return

    def read_into(self, buffer: memoryview) -> int:
        """
        Decrypt some of what has come; 0 at its end.

        Where nothing for us is in a few pieces, others have their turn before the next one.
        """
        if self.has_more and (count := self._read(buffer)) is not None:
            return count
        self._send_made()  # answers to key updates
        for _ in range(1 if self.is_slow else _RECORD_PIECES):
            if not self._take():
                return 0
            if (count := self._read(buffer)) is not None:
                return count
        raise BlockingIOError

    def write(self, data: bytes) -> None:
        """Encrypt *data*, for `send`."""
        pieces: list[bytes | memoryview] = [self._unsent]
        for start in range(0, len(data), PIECE_BYTES):
            self._tls.write(data[start : start + PIECE_BYTES])
            pieces.append(self._outgoing.read())
        self._unsent = b"".join(pieces)

    def send(self) -> None:
        """Send what is encrypted."""
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                raise ssl.SSLWantWriteError from None
            # Nothing is b"": an empty part of a view would keep the whole.
            self._unsent = memoryview(self._unsent)[sent:] if sent < len(self._unsent) else b""

    @property
    def kept_bytes(self) -> int:
        """What an answer takes that could not be sent yet: all of it until its end is sent, and the kernel's part."""
        whole = memoryview(memoryview(self._unsent).obj)  # of which `_unsent` is the end
        return whole.nbytes + _KERNEL_BYTES

    def say_goodbye(self) -> None:
        """Send TLS's last record and TCP's, if that can be done at once."""
        if self._has_begun:
            if not self._fills_cache:
                with suppress(OSError):  # it waits for the caller's last record, which we do not
                    self._tls.unwrap()
            self._send_if_possible()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    @property
    def _fills_cache(self) -> bool:
        """
        Whether OpenSSL keeps many sessions already, and would keep this one.

        Of TLS 1.2 it keeps 20,480, for two hours, and Python cannot tell it another number. It drops that of a
        connection to which we send no last record: our answers say how long they are, so that nobody misses it.
        """
        return self._tls.version() == "TLSv1.2" and self.context.session_stats()["number"] > MAX_SESSIONS

    def discard(self) -> int:
        """Take some of what comes, and do not decrypt it; the number of bytes, 0 at the end."""
        return self._socket.recv_into(_ARRIVED)

    @property
    def untaken_bytes(self) -> int:
        """What was sent and the caller's side has not acknowledged, TCP's end included."""
        return closing.untaken_bytes(self._socket)

    def close(self) -> None:
        """Close it, whatever is under way; the kernel keeps nothing of it."""
        closing.close(self._socket)

    def _read(self, buffer: memoryview) -> int | None:
        clock = self._clock
        began = clock()
        try:
            count = self._tls.read(len(buffer), buffer)
        except ssl.SSLWantReadError:
            # A renegotiation's hello is denied by OpenSSL once it is here, for which it takes as much as that declares.
            if not self._tls.version():
                raise ConnectionAbortedError("a part of a handshake's message, after the handshake") from None
            return None
        except ssl.SSLError:
            self._send_if_possible()
            raise
        finally:
            if clock() - began > _SLOW_SECONDS:
                self.is_slow |= clock is time.thread_time
                self._clock = time.thread_time
        self._empty_bytes = 0
        return int(count)

    def _send_if_possible(self) -> None:
        with suppress(OSError):
            self._send_made()

    def _send_made(self) -> None:
        if self._outgoing.pending:
            made = self._outgoing.read()
            if self._hellos:
                self._hellos.go_on_after(made)
            self._unsent = b"".join([self._unsent, made])
        self.send()

    def _take(self) -> int:
        count = self._socket.recv_into(_ARRIVED, _SLOW_PIECE_BYTES if self.is_slow else PIECE_BYTES)
        self._incoming.write(self._admitted(_ARRIVED[:count]))
        self._empty_bytes += count
        if self._empty_bytes > MAX_EMPTY_BYTES:
            raise ConnectionAbortedError(f"more than {MAX_EMPTY_BYTES} bytes of TLS with nothing in them")
        return count

    def _admitted(self, piece: bytes | memoryview) -> bytes | memoryview:
        """What OpenSSL may have now, of this piece and of those that it has not got yet."""
        if not self._hellos:
            return piece
        admitted = self._hellos.admit(piece)
        if self._hellos.is_over:
            self._hellos = None
        return admitted
