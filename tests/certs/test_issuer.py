import ipaddress
import ssl
import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.issuer import IssueError, Pair, issue_to_directory, new_ca
from tests.certs.rotation_states import NOW

NAMES = ("gpu-share.gpu-share.svc", "127.0.0.1", "::1")


def serving_certificate(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate_pem)


def verify(pair: Pair, ca: x509.Certificate, *, at: datetime, name: str = NAMES[0]) -> None:
    builder = PolicyBuilder().store(Store([ca])).time(at)
    builder.build_server_verifier(x509.DNSName(name)).verify(serving_certificate(pair), [])


def test_clients_that_trust_the_ca_accept_a_serving_certificate_for_its_names() -> None:
    ca = new_ca(now=NOW)
    pair = ca.issue(NAMES, now=NOW)
    verify(pair, ca.certificate, at=NOW)
    with pytest.raises(VerificationError):
        verify(pair, ca.certificate, at=NOW, name="other.gpu-share.svc")
    with pytest.raises(VerificationError):
        verify(pair, new_ca(now=NOW).certificate, at=NOW)


def test_a_serving_certificate_is_valid_for_30_days_and_its_ca_for_a_year() -> None:
    ca = new_ca(now=NOW)
    pair = ca.issue(NAMES, now=NOW)
    for at in (NOW - timedelta(minutes=4), NOW + timedelta(days=30)):
        verify(pair, ca.certificate, at=at)
    for at in (NOW - timedelta(minutes=6), NOW + timedelta(days=30, seconds=1)):
        with pytest.raises(VerificationError):
            verify(pair, ca.certificate, at=at)
    assert ca.certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_a_serving_certificate_cannot_issue_certificates() -> None:
    ca = new_ca(now=NOW)
    extensions = serving_certificate(ca.issue(NAMES, now=NOW)).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["gpu-share.gpu-share.svc"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(ip) for ip in NAMES[1:]]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    signer = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    own = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert signer == own.digest


def test_a_ca_can_only_issue_serving_certificates() -> None:
    extensions = new_ca(now=NOW).certificate.extensions
    constraints = extensions.get_extension_for_class(x509.BasicConstraints)
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.digital_signature) == (True, True, False)


def test_keys_are_p_256_and_new_each_time() -> None:
    ca = new_ca(now=NOW)
    pairs = [ca.pair, *(ca.issue(NAMES, now=NOW) for _ in range(2))]
    for pair in pairs:
        key = load_pem_private_key(pair.key_pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert isinstance(key.curve, ec.SECP256R1)
        assert serving_certificate(pair).public_key() == key.public_key()
    assert len({pair.key_pem for pair in pairs}) == 3


def test_two_cas_created_in_one_second_have_different_names() -> None:
    assert new_ca(now=NOW).certificate.subject != new_ca(now=NOW).certificate.subject


@pytest.mark.parametrize(
    "name", ["", "münchen.svc", "a b", "-a.svc", "a..svc", "a" * 64, "127.0.0.1:8443", "fe80::1%eth0"]
)
def test_an_invalid_name_is_an_error(name: str) -> None:
    with pytest.raises(IssueError, match=r"^expected a DNS name or an IP address, got"):
        new_ca(now=NOW).issue(("localhost", name), now=NOW)


def test_a_certificate_without_a_name_is_an_error() -> None:
    with pytest.raises(IssueError, match=r"^expected at least one DNS name or IP address"):
        new_ca(now=NOW).issue((), now=NOW)


def test_a_name_too_long_for_the_subject_is_still_an_alternative_name() -> None:
    ca = new_ca(now=NOW)
    name = f"gpu-share.{'n' * 60}.svc.cluster.local"
    verify(ca.issue((name,), now=NOW), ca.certificate, at=NOW, name=name)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IssueError, match=r"^--out .*/file/out: Not a directory: name a directory"):
        issue_to_directory(tmp_path / "file" / "out", dns_names=("localhost",))


def test_three_files_are_written_and_only_their_owner_can_read_the_key(tmp_path: Path) -> None:
    out = tmp_path / "new" / "directory"
    for _ in range(2):  # into a new directory, and over existing files
        issue_to_directory(out, dns_names=("localhost",))
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {
            "ca.crt": 0o644,
            "tls.crt": 0o644,
            "tls.key": 0o600,
        }
        context = ssl.create_default_context(cafile=str(out / "ca.crt"))
        context.load_cert_chain(out / "tls.crt", out / "tls.key")
