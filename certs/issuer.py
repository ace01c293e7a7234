"""Issue certificates: a CA, and serving certificates signed by it."""

import ipaddress
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=365)
SERVING_LIFETIME = timedelta(days=30)
CLOCK_SKEW = timedelta(minutes=5)  # callers whose clocks are behind accept a new certificate too
_LABEL = "[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_DNS_NAME = re.compile(rf"(?=.{{1,253}}\Z)(\*\.)?{_LABEL}(\.{_LABEL})*")


class IssueError(Exception):
    """A certificate cannot be issued or written: one line that says what was given and what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate_pem: bytes
    key_pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CA:
    """A CA certificate and its private key, and so able to issue serving certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pair(self) -> Pair:
        """The CA as PEM, which is how it is stored."""
        return _pair(self.certificate, self.key)

    def issue(self, dns_names: Sequence[str], *, now: datetime) -> Pair:
        """
        Return a serving certificate for *dns_names* (DNS names and IP addresses), with a new key.

        Raises:
            IssueError: If *dns_names* is empty, or a name is neither a DNS name nor an IP address.
        """
        names = x509.SubjectAlternativeName(check_names(dns_names))
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(key.public_key(), subject=_name(dns_names[0]), issuer=self.certificate.subject)
        builder = _valid(builder, now=now, lifetime=SERVING_LIFETIME)
        for extension, critical in [(names, False), *self._serving_extensions()]:
            builder = builder.add_extension(extension, critical)
        return _pair(builder.sign(self.key, hashes.SHA256()), key)

    def _serving_extensions(self) -> list[tuple[x509.ExtensionType, bool]]:
        identifier = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        return [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_key_usage(digital_signature=True), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
        ]


def check_names(dns_names: Sequence[str]) -> list[x509.GeneralName]:
    """
    Return *dns_names* as subject alternative names.

    Raises:
        IssueError: If *dns_names* is empty, or a name is neither a DNS name nor an IP address.
    """
    if not dns_names:
        raise IssueError("expected at least one DNS name or IP address for the serving certificate, got none")
    return [_alternative_name(name) for name in dns_names]


def new_ca(*, now: datetime) -> CA:
    """Return a new, self-signed CA with a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    # Each CA has its own name, so that verifiers tell two in one CA bundle apart.
    name = _name(f"gpu-share {now:%Y-%m-%dT%H:%M:%SZ} {os.urandom(4).hex()}")
    builder = _valid(_builder(key.public_key(), subject=name, issuer=name), now=now, lifetime=CA_LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return CA(certificate=builder.sign(key, hashes.SHA256()), key=key)


def issue_to_directory(out: Path, dns_names: Sequence[str]) -> None:
    """
    Write `ca.crt` of a new CA, and `tls.crt` and `tls.key` (mode 0600) issued by it, into the directory *out*.

    Raises:
        IssueError: If a name is invalid, or *out* cannot be written.
    """
    now = datetime.now(UTC)
    ca = new_ca(now=now)
    serving = ca.issue(dns_names, now=now)
    try:
        out.mkdir(parents=True, exist_ok=True)
        _write(out / "ca.crt", ca.pair.certificate_pem, mode=0o644)
        _write(out / "tls.key", serving.key_pem, mode=0o600)
        _write(out / "tls.crt", serving.certificate_pem, mode=0o644)
    except OSError as error:
        raise IssueError(f"--out {out}: {error.strerror}: name a directory that can be written") from None


def _builder(
    public_key: ec.EllipticCurvePublicKey, *, subject: x509.Name, issuer: x509.Name
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=public_key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)


def _valid(builder: x509.CertificateBuilder, *, now: datetime, lifetime: timedelta) -> x509.CertificateBuilder:
    return builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + lifetime)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])  # the longest X.509 allows


def _alternative_name(name: str) -> x509.GeneralName:
    with suppress(ValueError):
        if "%" not in name:  # before a zone, which says something on one machine alone
            return x509.IPAddress(ipaddress.ip_address(name))
    if not _DNS_NAME.fullmatch(name):
        raise IssueError(f"expected a DNS name or an IP address, got {name!a}")
    return x509.DNSName(name)


def _key_usage(*, digital_signature: bool = False, signs_certificates: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Replace *path* atomically."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
