"""
Until when a certificate is valid.

OpenSSL has read it before; Python's `ssl` does not tell its end, and the library that does takes 7 MiB. So this walks
to the one field: certificate, its content, past version, number, algorithm and issuer, and in the validity to its end.
"""

import re
from binascii import a2b_base64
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _VERSION, _SHORT_TIME, _TIME = 0x30, 0xA0, 0x17, 0x18
_LONG = 0x80  # of a length: so many bytes follow that hold it
_FORMS = {_SHORT_TIME: "%y%m%d%H%M%SZ", _TIME: "%Y%m%d%H%M%SZ"}


def ends_at(pem: bytes) -> float | None:
    """Say until when the first certificate of a file is valid, in seconds since 1970; None if that cannot be read."""
    found = _PEM.search(pem)
    if found is None:
        return None
    try:
        return _end(a2b_base64(found[1]))
    except (ValueError, IndexError):
        return None


def _end(der: bytes) -> float:
    at, _ = _inside(der, 0, _SEQUENCE)
    at, _ = _inside(der, at, _SEQUENCE)
    if der[at] == _VERSION:
        at = _after(der, at)
    for _ in ("number", "algorithm", "issuer"):
        at = _after(der, at)
    at, _ = _inside(der, at, _SEQUENCE)
    at = _after(der, at)
    form = _FORMS.get(der[at], "")
    begin, end = _inside(der, at, der[at])
    return datetime.strptime(der[begin:end].decode("ascii"), form).replace(tzinfo=UTC).timestamp()


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
