import ipaddress
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from certs.issuer import IssueError, Pair, issue_to_folder, new_authority

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NAMES = ("gpu-share.gpu-share.svc", "127.0.0.1", "::1")


def serving_certificate(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate_pem)


def verify(pair: Pair, authority: x509.Certificate, *, at: datetime, name: str = NAMES[0]) -> None:
    builder = PolicyBuilder().store(Store([authority])).time(at)
    builder.build_server_verifier(x509.DNSName(name)).verify(serving_certificate(pair), [])


def test_a_serving_certificate_is_trusted_for_its_names_by_those_who_trust_the_authority() -> None:
    authority = new_authority(now=NOW)
    pair = authority.issue(NAMES, now=NOW)
    verify(pair, authority.certificate, at=NOW)
    with pytest.raises(VerificationError):
        verify(pair, authority.certificate, at=NOW, name="other.gpu-share.svc")
    with pytest.raises(VerificationError):
        verify(pair, new_authority(now=NOW).certificate, at=NOW)


def test_a_serving_certificate_is_valid_for_30_days_and_its_authority_for_a_year() -> None:
    authority = new_authority(now=NOW)
    pair = authority.issue(NAMES, now=NOW)
    for at in (NOW - timedelta(minutes=4), NOW + timedelta(days=30)):
        verify(pair, authority.certificate, at=at)
    for at in (NOW - timedelta(minutes=6), NOW + timedelta(days=30, seconds=1)):
        with pytest.raises(VerificationError):
            verify(pair, authority.certificate, at=at)
    assert authority.certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_a_serving_certificate_serves_and_signs_nothing() -> None:
    authority = new_authority(now=NOW)
    extensions = serving_certificate(authority.issue(NAMES, now=NOW)).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["gpu-share.gpu-share.svc"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address(ip) for ip in NAMES[1:]]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    signer = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert signer == own.digest


def test_an_authority_signs_serving_certificates_alone() -> None:
    extensions = new_authority(now=NOW).certificate.extensions
    constraints = extensions.get_extension_for_class(x509.BasicConstraints)
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.digital_signature) == (True, True, False)


def test_keys_are_p_256_and_new_each_time() -> None:
    authority = new_authority(now=NOW)
    pairs = [authority.pair, *(authority.issue(NAMES, now=NOW) for _ in range(2))]
    for pair in pairs:
        key = load_pem_private_key(pair.key_pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert isinstance(key.curve, ec.SECP256R1)
        assert serving_certificate(pair).public_key() == key.public_key()
    assert len({pair.key_pem for pair in pairs}) == 3


def test_two_authorities_of_one_second_have_different_names() -> None:
    assert new_authority(now=NOW).certificate.subject != new_authority(now=NOW).certificate.subject


@pytest.mark.parametrize("name", ["", "münchen.svc", "a b", "-a.svc", "a..svc", "a" * 64, "127.0.0.1:8443"])
def test_a_certificate_for_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(IssueError, match="neither a DNS name nor an IP address"):
        new_authority(now=NOW).issue(("localhost", name), now=NOW)


def test_a_certificate_for_no_name_is_refused() -> None:
    with pytest.raises(IssueError, match="at least one"):
        new_authority(now=NOW).issue((), now=NOW)


def test_a_long_name_does_not_fit_the_subject_and_is_served_all_the_same() -> None:
    authority = new_authority(now=NOW)
    name = f"gpu-share.{'n' * 60}.svc.cluster.local"
    verify(authority.issue((name,), now=NOW), authority.certificate, at=NOW, name=name)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IssueError, match=r"^--out .*/file/out: Not a directory: name a folder"):
        issue_to_folder(tmp_path / "file" / "out", dns_names=("localhost",))


def test_a_folder_gets_the_three_files_with_the_key_for_its_owner_alone(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    for _ in range(2):  # into a new folder, and over what is there
        issue_to_folder(out, dns_names=("localhost",))
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {
            "ca.crt": 0o644,
            "tls.crt": 0o644,
            "tls.key": 0o600,
        }
        context = ssl.create_default_context(cafile=str(out / "ca.crt"))
        context.load_cert_chain(out / "tls.crt", out / "tls.key")
