"""The certificate that is served: the newest good pair of files, looked for at every handshake."""

import logging
import ssl
import time
from math import inf
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from program.files import read_file
from webhook.validity import Validity, as_utc, validity_of

log = logging.getLogger(__name__)

_LARGEST_BYTES = 1024 * 1024  # a Secret, with all its files, is at most this

_State = tuple[tuple[int, int, int], ...]

# Alerts by which a caller says that it does not trust the certificate; those of Go's are the first.
_REJECTIONS: Final = frozenset(
    {
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
        "TLSV1_ALERT_UNKNOWN_CA",
    }
)


class CertificateError(Exception):
    """A certificate and key that cannot be served: one line that names the file and what to do."""


class UnreadableError(CertificateError):
    """A file that could not be read, such as for want of descriptors."""


class _Pair(NamedTuple):
    """A certificate and its key, ready to be served."""

    context: ssl.SSLContext
    validity: Validity
    fault: CertificateError | None = None  # for which another one is preferred


class ServingCertificate:
    """
    The pair of files in force.

    Each pair that is loaded gets a context of its own, and handshakes take the newest: nothing is
    ever half-changed, and a connection keeps the context that it began with.

    Raises:
        CertificateError: If the files are not a good pair when this is made.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._lock = Lock()  # who serves and who watches both look: neither takes the old pair while the other reads
        self._again = inf  # when the same files are to be looked at again, in seconds since 1970
        self._seen = self._state()
        self._pair = self._read()
        self._other: _Pair | None = None  # which is as good, but for its time by our clock
        self.newest_error: CertificateError | None = None

    @property
    def validity(self) -> Validity:
        """Of the pair in force."""
        return self._pair.validity

    def refresh(self, *, is_logged: bool = True) -> bool:
        """
        Look at the files, and say whether a new pair is in force, in the log as well if *is_logged*.

        Costs two `stat` calls (4 µs, a hundredth of a handshake) while nothing changes, so it is asked at every
        handshake. A pair that is not good, or has expired while that in force has not, is left alone until it changes
        again; one that cannot be read is tried again. One that is not valid yet waits while that in force is valid.
        """
        with self._lock:
            return self._refreshed(is_logged=is_logged)

    def newest(self) -> ssl.SSLContext:
        """Context for a handshake that begins now."""
        self.refresh()
        return self._pair.context

    def was_rejected(self, context: ssl.SSLContext, reason: str) -> None:
        """
        Serve the pair that waits for its time, if the *reason* why a handshake failed is a caller's alert on the other.

        Whether the issuer's clock is ahead or this one is behind, and the old pair out of trust, only callers know. If
        they reject that pair as well, the other one serves again.
        """
        with self._lock:
            if reason not in _REJECTIONS or context is not self._pair.context or self._other is None:
                return
            self._pair, self._other = self._other, self._pair
            self.newest_error = self._other.fault
        begins = as_utc(self.validity.begins)
        log.warning("certificate rejected, the other one in force", extra={"reason": reason, "begins": begins})

    def _refreshed(self, *, is_logged: bool) -> bool:
        state = self._state()
        if state == self._seen and time.time() < self._again:
            return False
        # Looked at before it is read: what changes in between is read again at the next look.
        self._seen, self._again, self._other = state, inf, None
        try:
            newest = self._read()
            self._prefer(newest)
        except CertificateError as error:
            if is_logged and str(error) != str(self.newest_error):
                log.warning("new certificate ignored", extra={"error": str(error)})
            self.newest_error = error
            if isinstance(error, UnreadableError):
                self._again = -inf  # it may be readable at the next look, and nothing of it different
            return False
        self._pair, self.newest_error = newest, None
        if is_logged:
            log.info("new certificate in force", extra={"certificate": str(self._certificate)})
        return True

    def _prefer(self, newest: _Pair) -> None:
        """Raise why the pair in force is preferred, if it is."""
        old, new, now = self.validity, newest.validity, time.time()
        if old.is_over(now):
            return
        if new.is_over(now):
            raise CertificateError(
                f"--cert {self._certificate}: it expired at {as_utc(new.ends)}: give one that is valid"
            )
        if new.is_ahead(now) and not old.is_ahead(now):
            fault = CertificateError(
                f"--cert {self._certificate}: it is not valid before {as_utc(new.begins)} by the clock of this node: "
                "wait until then, give one that is valid, or correct the clock"
            )
            self._again, self._other = min(new.begins, old.ends), newest._replace(fault=fault)
            raise fault

    def _read(self) -> _Pair:
        content = _content("--cert", self._certificate)
        _content("--key", self._key)
        context = _context(self._certificate, self._key)
        try:
            return _Pair(context, validity_of(content))
        except ValueError:  # OpenSSL serves it, and callers reject it
            raise CertificateError(
                f"--cert {self._certificate}: until when it is valid cannot be read: give one with times as in RFC 5280"
            ) from None

    def _state(self) -> _State | None:
        try:
            # `stat` follows links, so it sees a Secret's `..data` link swapped as well.
            found = (self._certificate.stat(), self._key.stat())
        except OSError:
            return None
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # Of any group that we take, whoever begins a handshake can have us make a key, and need not make one himself: by
    # ffdhe8192, which OpenSSL takes as it comes, 168 ms for 1 KiB sent. This one is cheap, and all clients have it.
    context.set_ecdh_curve("prime256v1")
    # Nobody gets a ticket. By TLS 1.2 a session can still be resumed, by its ID: with this pair alone, for sessions are
    # kept in the context. How many of them is bounded where a connection ends (`SecuredSocket.say_goodbye`).
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(certificate, key, password=_deny_password)
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(_fault(certificate, key, error)) from error
    except OSError as error:  # one of the two, which could be read a moment ago
        raise _unreadable("--cert", certificate, error) from None
    return context


def _unreadable(option: str, path: Path, error: OSError) -> UnreadableError:
    reason = (error.strerror or str(error)).lower()
    return UnreadableError(f"{option} {path}: {reason}: give the path of a PEM file")


def _content(option: str, path: Path) -> bytes:
    try:
        content = read_file(path, most_bytes=_LARGEST_BYTES + 1)
    except OSError as error:
        raise _unreadable(option, path, error) from None
    if len(content) > _LARGEST_BYTES:
        raise CertificateError(
            f"{option} {path}: larger than {_LARGEST_BYTES // 1024} KiB: give the path of a PEM file"
        )
    return content


def _deny_password() -> str:
    raise ValueError("it is encrypted")  # OpenSSL would ask the terminal


def _fault(certificate: Path, key: Path, error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return f"--key {key}: it is not the key of {certificate}: give the two files of one pair"
    if isinstance(error, ssl.SSLError) and error.reason and error.reason.endswith(("_TOO_SMALL", "_TOO_WEAK")):
        return f"--cert {certificate}: too weak for OpenSSL ({error.reason}): give one of ECDSA, or RSA of 2048 bits"
    if isinstance(error, ValueError):
        return f"--key {key}: {error}: give a key without a password"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=certificate.read_text("ascii"))
    except (OSError, ValueError):
        return f"--cert {certificate}: no certificate in PEM form: give the serving certificate and its chain"
    return f"--key {key}: no private key in PEM form: give the key of {certificate}"
