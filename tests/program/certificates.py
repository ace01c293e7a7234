"""Certificates as some clusters have them: without key identifiers, which RFC 5280 wants and Kubernetes does not."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class PlainCa:
    """A CA whose certificates have no key identifiers."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls, directory: Path, name: str = "ca") -> "PlainCa":
        """Make one, and write its certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder("kubernetes", key.public_key()).issuer_name(_name("kubernetes"))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = cls(builder.sign(key, hashes.SHA256()), key)
        (directory / f"{name}.crt").write_bytes(made.certificate.public_bytes(Encoding.PEM))
        return made

    def ca(self, directory: Path, name: str) -> "PlainCa":
        """Make another one that this one vouches for, and write its certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, key.public_key()).issuer_name(self.certificate.subject)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = PlainCa(builder.sign(self.key, hashes.SHA256()), key)
        (directory / f"{name}.crt").write_bytes(made.certificate.public_bytes(Encoding.PEM))
        return made

    def issue(self, directory: Path, name: str, *, to: str = "localhost", days: int = 1, password: bytes = b"") -> None:
        """Write certificate and key of that *name*."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(to, key.public_key(), days=days).issuer_name(self.certificate.subject)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(to)]), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)
        (directory / f"{name}.crt").write_bytes(certificate)
        encryption = BestAvailableEncryption(password) if password else NoEncryption()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        (directory / f"{name}.key").write_bytes(private)

    def issue_by_common_name(self, directory: Path, name: str, *, to: str = "localhost") -> None:
        """Write certificate and key of that *name*, in which the host is the common name and nothing else."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _builder(to, key.public_key()).issuer_name(self.certificate.subject).sign(self.key, hashes.SHA256())
        (directory / f"{name}.crt").write_bytes(made.public_bytes(Encoding.PEM))
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (directory / f"{name}.key").write_bytes(private)


def _builder(name: str, key: ec.EllipticCurvePublicKey, *, days: int = 1) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(_name(name)).public_key(key)
    end = datetime.now(UTC) + timedelta(days=days)
    builder = builder.not_valid_before(end - timedelta(days=9)).not_valid_after(end)
    return builder.serial_number(x509.random_serial_number())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
