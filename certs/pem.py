"""Read certificates and keys from PEM. Anyone may have written it, so what is invalid is ignored and never raises."""

import os
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Final, NoReturn

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.issuer import CA
from program.certificates import first_certificate, read_certificates

# What cryptography raises where fields of a certificate are not of their types, or of kinds that it does not know.
_MALFORMED: Final = (
    ValueError,
    TypeError,
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


def write_certificates(certificates: Iterable[x509.Certificate]) -> bytes:
    """Return *certificates* as PEM, without duplicates."""
    return b"".join(each.public_bytes(Encoding.PEM) for each in dict.fromkeys(certificates))


def shared(bundles: Sequence[bytes]) -> tuple[bytes | None, bytes | None]:
    """
    Compare the CA bundles of several webhooks.

    Returns:
        The bundle that all have, None without any, and None; or what is in each of them, and what is in some.
    """
    if len(set(bundles)) <= 1:
        return (bundles[0] if bundles else None), None
    read = [read_certificates(bundle) for bundle in bundles]
    every = dict.fromkeys(each for certificates in read for each in certificates)
    common = [each for each in every if all(each in certificates for certificates in read)]
    return write_certificates(common), write_certificates(each for each in every if each not in common)


def read_ca(certificate_pem: bytes, key_pem: bytes, *, now: datetime) -> CA | None:
    """Return the CA with this certificate and key; None unless clients accept what it issues at *now*."""
    certificates = read_certificates(certificate_pem)
    key = _read_key(key_pem)
    if not certificates or not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        return None
    ca = CA(certificate=certificates[0], key=key)
    try:
        trial = ca.issue(("trial",), now=now)
    except _MALFORMED:
        return None
    fault = _fault_to_clients(trial.certificate_pem, trial.key_pem, trusted=certificates[:1], name="trial", now=now)
    return None if fault else ca


def serving_fault(
    certificate_pem: bytes, key_pem: bytes, *, trusted: Sequence[x509.Certificate], name: str, now: datetime
) -> str | None:
    """
    Return why the pair cannot be served at *now* to a client that trusts *trusted* and calls *name*; None if it can.

    It can if the client accepts it and the webhook can load it.
    """
    fault = _fault_to_clients(certificate_pem, key_pem, trusted=trusted, name=name, now=now)
    return fault or _fault_to_webhook(certificate_pem, key_pem)


def _fault_to_clients(
    certificate_pem: bytes, key_pem: bytes, *, trusted: Sequence[x509.Certificate], name: str, now: datetime
) -> str | None:
    chain = read_certificates(certificate_pem)
    if not chain:
        return "the serving certificate is missing or invalid"
    key = _read_key(key_pem)
    try:
        if key is None or key.public_key() != chain[0].public_key():
            return "the private key does not match the serving certificate"
    except (ValueError, UnsupportedAlgorithm):
        return "the serving certificate has an unsupported type of key"
    if any(_accepts(root, chain, name=name, now=now) for root in trusted):
        return None
    return f"clients reject the serving certificate for {name}: expired, for other names, or issued by an untrusted CA"


def _accepts(root: x509.Certificate, chain: Sequence[x509.Certificate], *, name: str, now: datetime) -> bool:
    # One root at a time: an invalid one in the CA bundle must not fail the others.
    try:
        verifier = PolicyBuilder().store(Store([root])).time(now).build_server_verifier(x509.DNSName(name))
        verifier.verify(chain[0], list(chain[1:]))
    except (VerificationError, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _fault_to_webhook(certificate_pem: bytes, key_pem: bytes) -> str | None:
    try:
        _load(certificate_pem, key_pem)
    except (ssl.SSLError, ValueError):
        return "the webhook cannot load the serving certificate or its key: one of them is not PEM as OpenSSL reads it"
    except OSError:
        return None  # for want of descriptors or of /proc: that says nothing of the pair
    return None


@lru_cache(maxsize=8)  # a pass asks up to four times, and loading takes longer than all else that is asked of a pair
def _load(certificate_pem: bytes, key_pem: bytes) -> None:
    """Load the pair as the webhook does: OpenSSL rejects files that our readers find certificate and key in."""
    if first_certificate(certificate_pem) is None:
        raise ValueError("it would serve another certificate than the one that our readers find")
    with _file_in_memory(certificate_pem) as certificate, _file_in_memory(key_pem) as key:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_deny_password)


@contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    # OpenSSL takes a path, and no key may be written to a disk.
    with os.fdopen(os.memfd_create("pem"), "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _deny_password() -> NoReturn:
    raise ValueError("it is encrypted")  # OpenSSL would ask the terminal


def dns_names(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names that *certificate* is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _MALFORMED:
        return frozenset()
    return frozenset(names.get_values_for_type(x509.DNSName))


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 fingerprint of *certificate*, in hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def _read_key(pem: bytes) -> PrivateKeyTypes | None:
    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
