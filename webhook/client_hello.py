"""The ClientHellos of a handshake, looked at before OpenSSL reads them: it takes much memory for few bytes of them."""

import hashlib
from contextlib import suppress
from typing import Final

from webhook.settings import MAX_CIPHER_BYTES, MAX_HELLO_BYTES, MAX_HELLO_RECORDS, MAX_LIST_BYTES

_HANDSHAKE: Final = 22  # type of a record; it has five bytes in front: type, version, length (RFC 8446, 5.1)
_RECORD_HEAD: Final = 5
_MAJOR: Final = 3  # of the version, from SSL 3.0 to TLS 1.3
_CLIENT_HELLO: Final = 1  # type of a message; it has four bytes in front: type, length (RFC 8446, 4)
_MESSAGE_HEAD: Final = 4
_SESSION_ID: Final = 38  # where it begins, after the version and the random of a hello (RFC 8446, 4.1.2)
_RANDOM: Final = slice(11, 43)  # of a ServerHello that is the first of a flight
_RETRY: Final = hashlib.sha256(b"HelloRetryRequest").digest()  # in its place (RFC 8446, 4.1.3)

# Extensions with lists that OpenSSL keeps as objects for as long as the connection lives, up to 50 times as large:
# status_request, supported_groups, ec_point_formats, signature_algorithms, ALPN, certificate_authorities,
# signature_algorithms_cert.
_KEPT: Final = frozenset({5, 10, 11, 13, 16, 47, 50})


class ClientHellos:
    """
    What a caller sends until its last hello is answered. OpenSSL gets each of them whole, or nothing of it.

    For a hello it takes as much as the first four bytes declare, up to 128 KiB, and many times what its lists have.
    What comes behind one, such as early data, it gets when that is answered: it may be a second hello.
    """

    __slots__ = ("_begin", "_held", "_is_first", "_is_whole", "_message", "_records", "_seen", "is_over")

    def __init__(self) -> None:
        self._held = bytearray()  # what has come, and OpenSSL has not got
        self._seen = 0  # bytes of it, in records that are whole
        self._begin = 0  # bytes of those that are in front of a hello
        self._message = bytearray()  # what the others have of it
        self._records = 0  # that are whole, since the last answer
        self._is_whole = False
        self._is_first = True  # is the next record
        self.is_over = False  # what comes from now on goes to OpenSSL as it comes

    def admit(self, piece: bytes | memoryview) -> bytes:
        """
        Take what has come, and give what OpenSSL may have now.

        Raises:
            ConnectionAbortedError: If OpenSSL is to have nothing more of this caller.
        """
        self._held += piece
        while not self._is_whole and self._read_record():
            pass
        may_be_read = self._seen if self._is_whole or not self._message else self._begin
        admitted = bytes(self._held if self.is_over else self._held[:may_be_read])
        del self._held[: len(admitted)]
        self._seen -= may_be_read
        self._begin = 0
        return admitted

    def go_on_after(self, flight: bytes) -> None:
        """Expect a second hello if the *flight* of ours is a HelloRetryRequest, and none after another."""
        if self._is_whole:
            self.is_over = flight[_RANDOM] != _RETRY
            self._is_whole = False
            self._records = 0
            self._message.clear()

    def _read_record(self) -> bool:
        """Whether another record is whole; what it has of a hello is added to that."""
        start = self._seen
        head = self._held[start : start + _RECORD_HEAD]
        if len(head) < _RECORD_HEAD:
            return False
        if self._is_first and self._is_not_tls(head):
            return False
        self._is_first = False
        if head[1] != _MAJOR:
            raise ConnectionAbortedError(f"a record of TLS must have the major version {_MAJOR}, got {head[1]}")
        end = start + _RECORD_HEAD + int.from_bytes(head[3:])
        _check_size("a ClientHello with its records", end, MAX_HELLO_BYTES)
        if len(self._held) < end:
            return False
        self._seen = end
        self._records += 1
        if self._records > MAX_HELLO_RECORDS:
            raise ConnectionAbortedError(f"a ClientHello must have at most {MAX_HELLO_RECORDS} records")
        if head[0] == _HANDSHAKE:
            if end == start + _RECORD_HEAD:
                raise ConnectionAbortedError("an empty record of the handshake, which nobody may send (RFC 8446, 5.1)")
            if not self._message:
                self._begin = start
            self._message += self._held[start + _RECORD_HEAD : end]
            self._read_message()
        elif self._message:
            raise ConnectionAbortedError("a ClientHello must come in records that follow each other (RFC 8446, 5.1)")
        return True

    def _is_not_tls(self, head: bytearray) -> bool:
        """
        Whether OpenSSL ends the connection at this *head* of the first record, with a reason for the log.

        It ends none for an empty record of another type, so what comes behind one is looked at.
        """
        if head[0] & 0x80 and head[2] == _CLIENT_HELLO:
            raise ConnectionAbortedError("a ClientHello of SSL 2.0, for which OpenSSL would begin TLS")
        self.is_over = head[1] != _MAJOR
        return self.is_over

    def _read_message(self) -> None:
        if len(self._message) < _MESSAGE_HEAD:
            return
        end = _MESSAGE_HEAD + int.from_bytes(self._message[1:_MESSAGE_HEAD])
        _check_size("a ClientHello", end, MAX_HELLO_BYTES)
        if len(self._message) > end:
            raise ConnectionAbortedError("bytes after a ClientHello, before the answer to it")
        self._is_whole = len(self._message) == end
        if self._is_whole and self._message[0] == _CLIENT_HELLO:
            # Where a length leads beyond the hello, OpenSSL ends the connection with a reason for the log.
            with suppress(IndexError):
                _check_lists(self._message)


def _check_lists(hello: bytearray) -> None:
    at = _SESSION_ID + 1 + hello[_SESSION_ID]
    size = _uint16(hello, at)
    _check_size("the cipher suites of a ClientHello", size, MAX_CIPHER_BYTES)
    at += 2 + size
    at += 1 + hello[at]  # methods of compression
    at += 2  # the length of all extensions, which end with the hello
    while at < len(hello):
        extension, size = _uint16(hello, at), _uint16(hello, at + 2)
        if extension in _KEPT:
            _check_size(f"extension {extension} of a ClientHello", size, MAX_LIST_BYTES)
        at += 4 + size


def _check_size(name: str, size: int, most: int) -> None:
    if size > most:
        raise ConnectionAbortedError(f"{name} must have at most {most} bytes, got {size}")


def _uint16(data: bytearray, at: int) -> int:
    return data[at] << 8 | data[at + 1]
