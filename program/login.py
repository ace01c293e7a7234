"""
What requests show of their user, which is had anew before it expires.

The Python client alone asks a credential plugin for each request, many at once, while a token has less than five
minutes, never again for a certificate, and goes on as nobody where the plugin fails.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from threading import Lock
from typing import Any, Final, TypeAlias

from kubernetes import config
from urllib3 import BaseHTTPResponse, HTTPHeaderDict

from program.trusted_pools import TrustedPools

Headers: TypeAlias = tuple[tuple[str, str], ...]
_UNAUTHORIZED: Final = 401
_PAUSE_SECONDS: Final = 5.0  # between two times that it is had
_PAUSE_AFTER_FAILURE_SECONDS: Final = 30.0  # a plugin may open a window each time


class CredentialError(config.ConfigException):
    """What a user shows cannot be had: one sentence, in which nothing is that a kubeconfig keeps secret."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What is shown, and for how long; times are those of `time.time`."""

    authorization: str = field(default="", repr=False)  # the value of the header
    certificate: bytes = field(default=b"", repr=False)  # in PEM, with its key
    due: float = math.inf  # when it is to be had anew
    end: float = math.inf  # when it is worth nothing any more


class Login:
    """One user, for many threads."""

    def __init__(
        self, source: Callable[[], Credential], *, headers: Headers = (), clock: Callable[[], float] = time.time
    ) -> None:
        """
        Have it for the first time; *headers* go with each request.

        Raises:
            CredentialError: If it cannot be had.
        """
        self.headers = headers
        self._source = source
        self._clock = clock
        self._lock = Lock()
        self._failure = ""
        self._is_rejected = False
        self._known = source()
        self._asked_at = clock()

    def credential(self) -> Credential:
        """
        Give what is to be shown now.

        Raises:
            CredentialError: If it has expired, and cannot be had anew.
        """
        with self._lock:
            if self._is_due():
                self._renew()
            if self._failure and self._known.end <= self._clock():
                raise CredentialError(self._failure)
            return self._known

    def reject(self, shown: Credential) -> None:
        """Note that the API server knows no user by what was *shown*."""
        with self._lock:
            self._is_rejected |= shown is self._known

    def _is_due(self) -> bool:
        now = self._clock()
        pause = _PAUSE_AFTER_FAILURE_SECONDS if self._failure else _PAUSE_SECONDS
        # A clock that was set back must not end it for as long.
        return (self._is_rejected or now >= self._known.due) and abs(now - self._asked_at) >= pause

    def _renew(self) -> None:
        try:
            self._known = self._source()
            self._failure, self._is_rejected = "", False
        except config.ConfigException as error:
            self._failure = str(error)
        self._asked_at = self._clock()


class SignedIn:
    """
    Connections on which each request shows its user.

    The client itself knows one header of each name, and groups are several; and a certificate for its whole life.
    """

    def __init__(
        self,
        pools: TrustedPools,
        login: Login,
        showing: Callable[[bytes], Sequence[SSLContext]],
        *,
        files: Login | None = None,
    ) -> None:
        """
        Have requests made by *pools*, over TLS contexts that *showing* makes of a certificate.

        It is that of *login*, or else of *files*.
        """
        self._pools = pools
        self._login = login
        self._files = files
        self._showing = showing
        self._certificate = b""
        self._lock = Lock()
        self.clear = pools.clear

    def request(self, method: str, url: str, *, headers: dict[str, str], **rest: Any) -> BaseHTTPResponse:
        """
        Make a request.

        Raises:
            CredentialError: If there is nothing to show.
        """
        shown = self._login.credential()
        all_headers = HTTPHeaderDict(headers)
        if shown.authorization:
            all_headers["Authorization"] = shown.authorization
        for name, value in self._login.headers:
            all_headers.add(name, value)
        certificate = shown.certificate or (self._files.credential().certificate if self._files else b"")
        if certificate:
            self._show(certificate)
        answer = self._pools.request(method, url, headers=all_headers, **rest)
        if answer.status == _UNAUTHORIZED:
            self._login.reject(shown)
        return answer

    def _show(self, certificate: bytes) -> None:
        """Show it on connections that are made from now on: another context leads to ones of its own."""
        with self._lock:
            if certificate != self._certificate:
                self._pools.show(self._showing(certificate))
                self._certificate = certificate


def bearer(token: str) -> str:
    """
    Write a token as the value of a header; a file, or a plugin, may have ended it with a line.

    Raises:
        ConfigException: If no header can have it; it is not shown.
    """
    return f"Bearer {sendable(token.strip(), 'the token')}"


def sendable(value: str, what: str) -> str:
    """
    Check the value of a header.

    Raises:
        ConfigException: If no header can have it; it is not shown.
    """
    if not (value.isascii() and value.isprintable()):
        raise config.ConfigException(f"{what} has a character that HTTP does not allow")
    return value
