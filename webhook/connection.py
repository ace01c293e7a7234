"""A caller's connection: silent as long as it likes between two requests, in time within one."""

import errno
import time

from gevent.ssl import SSLSocket

from webhook.settings import REQUEST_SECONDS


class Connection(SSLSocket):  # type: ignore[misc] # gevent is published without types
    """
    A TLS socket on which a request that began must come in whole, and its answer go out, in time.

    gunicorn's gevent worker bounds the wait for a request alone, and with the long time that idle
    connections are kept. The bound here is on the whole, so a caller cannot stretch it byte by byte.
    """

    _request_ends: float | None = None  # seconds on the monotonic clock; None between two requests

    @property
    def idle(self) -> bool:
        """Whether no byte of a request has arrived since the last one was answered."""
        return self._request_ends is None

    def request_is_over(self) -> None:
        """Wait for the next request without a deadline of ours: gunicorn's `keepalive` bounds that."""
        self._request_ends = None
        self.settimeout(None)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """
        Receive up to *buflen* bytes.

        Raises:
            TimeoutError: If the request is not all there after REQUEST_SECONDS.
        """
        if self._request_ends is None:
            data: bytes = super().recv(buflen, flags)
            self._request_ends = time.monotonic() + REQUEST_SECONDS
            return data
        seconds_left = self._request_ends - time.monotonic()
        if seconds_left <= 0:
            raise _too_slow()
        self.settimeout(seconds_left)
        try:
            data = super().recv(buflen, flags)
        except TimeoutError:
            raise _too_slow() from None
        return data

    def sendall(self, data: bytes, flags: int = 0) -> None:
        """
        Send all of *data*.

        Raises:
            TimeoutError: If the caller does not take it within REQUEST_SECONDS.
        """
        self.settimeout(REQUEST_SECONDS)
        try:
            super().sendall(data, flags)
        except TimeoutError:
            raise _too_slow() from None

    def hang_up(self) -> None:
        """End a connection that waits for its next request, as if the caller had closed it."""
        # Not `self.shutdown`: gevent would raise EBADF in the greenlet that waits, and gunicorn log that.
        self._sock.shutdown(0)


def _too_slow() -> TimeoutError:
    # gunicorn passes over a reset connection and logs any other error of a socket with its traceback.
    return TimeoutError(errno.ECONNRESET, f"the request did not arrive within {REQUEST_SECONDS} s")
