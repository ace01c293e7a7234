"""
From when until when a certificate is valid.

OpenSSL has read it before; Python's `ssl` does not tell it, and the library that does takes 7 MiB. So this walks to the
one field: certificate, its content, past version, number, algorithm and issuer, and to both times of the validity.
"""

import re
from binascii import a2b_base64
from datetime import UTC, datetime
from typing import Final, NamedTuple

from program.pem import SERVED

_UTC_TIME: Final = re.compile(r"[0-9]{14}Z")  # the one form that RFC 5280 has
_SEQUENCE, _VERSION, _SHORT_TIME, _TIME = 0x30, 0xA0, 0x17, 0x18
_LONG = 0x80  # of a length: so many bytes follow that hold it
_FIRST_OF_1900S = "50"  # of the years with two digits


class Validity(NamedTuple):
    """When a certificate begins and ends to be valid, in seconds since 1970."""

    begins: float
    ends: float

    def is_ahead(self, now: float) -> bool:
        """Whether it is not valid yet."""
        return now < self.begins

    def is_over(self, now: float) -> bool:
        """Whether it has expired."""
        return self.ends <= now


def validity_of(pem: bytes) -> Validity:
    """
    Read the validity of the first certificate of a file.

    Raises:
        ValueError: If there is none, or its validity cannot be read.
    """
    found = SERVED.search(pem)
    if found is None:
        raise ValueError("expected a certificate in PEM form")
    try:
        return _validity(a2b_base64(found[2]))
    except IndexError:
        raise ValueError("shorter than a certificate") from None


def as_utc(seconds: float) -> str:
    """Write a time that is given in seconds since 1970."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _validity(der: bytes) -> Validity:
    at, _ = _inside(der, 0, _SEQUENCE)
    at, _ = _inside(der, at, _SEQUENCE)
    if der[at] == _VERSION:
        at = _after(der, at)
    for _ in ("number", "algorithm", "issuer"):
        at = _after(der, at)
    at, _ = _inside(der, at, _SEQUENCE)
    return Validity(begins=_time(der, at), ends=_time(der, _after(der, at)))


def _time(der: bytes, at: int) -> float:
    is_short = der[at] == _SHORT_TIME
    begin, end = _inside(der, at, _SHORT_TIME if is_short else _TIME)
    text = der[begin:end].decode("ascii")
    if is_short:
        text = ("19" if text >= _FIRST_OF_1900S else "20") + text
    if not _UTC_TIME.fullmatch(text):
        raise ValueError(f"expected a time in UTC with seconds, got {text}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _inside(der: bytes, at: int, tag: int) -> tuple[int, int]:
    """Say from where to where the content of an element goes."""
    if der[at] != tag:
        raise ValueError(f"expected tag {tag}, got {der[at]}")
    length, begin = der[at + 1], at + 2
    if length & _LONG:
        size = length & ~_LONG
        length, begin = int.from_bytes(der[begin : begin + size], "big"), begin + size
    if begin + length > len(der):
        raise ValueError("longer than the certificate")
    return begin, begin + length


def _after(der: bytes, at: int) -> int:
    return _inside(der, at, der[at])[1]
