"""Certificates out of PEM. Anyone may have written it, so what is invalid is ignored and never raises."""

import re
from contextlib import suppress

from cryptography import x509

from program.pem import SERVED

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")


def read_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates in *pem* in their order, without duplicates; whatever else it holds is ignored."""
    found = []
    for block in _CERTIFICATE.findall(pem):
        with suppress(ValueError, x509.InvalidVersion):  # the latter is no ValueError
            found.append(x509.load_pem_x509_certificate(block))
    return tuple(dict.fromkeys(found))


def first_certificate(pem: bytes) -> x509.Certificate | None:
    """Return the certificate that a server shows as its own; None if that is none of ours, whatever comes after it."""
    first = SERVED.search(pem)
    return next(iter(read_certificates(first[0])), None) if first else None
