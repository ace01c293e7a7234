"""The certificate in force, where files are what no test can make of a whole server's."""

import errno
import os
import re
import resource
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.issuer import issue_to_directory, new_ca
from tests.webhook.serving import wait_for
from webhook.tls import CertificateError, ServingCertificate


def test_a_pair_that_could_not_be_read_for_want_of_descriptors_is_read_again(tmp_path: Path) -> None:
    issue_to_directory(tmp_path, dns_names=("localhost",))
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue_to_directory(tmp_path, dns_names=("localhost",))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(next_one := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, limits[1]))
    try:
        assert certificate.newest() is before
        assert "too many open files" in str(certificate.newest_error)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert certificate.newest() is not before
    assert certificate.newest_error is None


def test_so_is_one_that_could_be_read_and_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issue_to_directory(tmp_path, dns_names=("localhost",))
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue_to_directory(tmp_path, dns_names=("localhost",))

    def failing(*_: object, **__: object) -> None:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    with monkeypatch.context() as broken:
        broken.setattr(ssl.SSLContext, "load_cert_chain", failing)
        assert certificate.newest() is before
        assert "tls.crt: too many open files in system" in str(certificate.newest_error)
    assert certificate.newest() is not before
    assert certificate.newest_error is None


def test_what_is_said_of_a_pair_is_what_its_files_are_now(tmp_path: Path) -> None:
    issue_to_directory(tmp_path, dns_names=("localhost",))
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    (tmp_path / "tls.crt").unlink()
    (tmp_path / "tls.crt").mkdir()
    certificate.refresh()
    assert "got a directory" in str(certificate.newest_error)
    (tmp_path / "tls.crt").rmdir()
    (tmp_path / "tls.crt").symlink_to("tls.crt")
    certificate.refresh()
    assert "too many levels of symbolic links" in str(certificate.newest_error)


def issue(directory: Path, *, days_ago: float) -> None:
    then = datetime.now(UTC) - timedelta(days=days_ago)
    pair = new_ca(now=then).issue(("localhost",), now=then)
    (directory / "tls.crt").write_bytes(pair.certificate_pem)
    (directory / "tls.key").write_bytes(pair.key_pem)


def test_a_pair_that_has_expired_replaces_none_that_is_valid_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    issue(tmp_path, days_ago=0)
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before, validity = certificate.newest(), certificate.validity
    issue(tmp_path, days_ago=31)
    assert certificate.newest() is before
    assert certificate.validity == validity
    assert "tls.crt: it expired at " in str(certificate.newest_error)
    assert [record.message for record in caplog.records] == ["new certificate ignored"]
    issue(tmp_path, days_ago=1)
    assert certificate.newest() is not before
    assert certificate.newest_error is None


def test_a_pair_that_has_expired_replaces_one_that_has_too(tmp_path: Path) -> None:
    issue(tmp_path, days_ago=40)
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue(tmp_path, days_ago=31)
    assert certificate.newest() is not before


def test_a_pair_that_is_not_valid_yet_is_taken_up_when_the_one_in_force_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    issue(tmp_path, days_ago=30 - 3 / 86400)  # valid for three seconds more
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before, validity = certificate.newest(), certificate.validity
    issue(tmp_path, days_ago=-1)
    assert certificate.newest() is before
    assert certificate.newest() is before
    assert certificate.validity == validity
    assert "tls.crt: it is not valid before " in str(certificate.newest_error)
    assert [record.message for record in caplog.records] == ["new certificate ignored"]
    wait_for(lambda: certificate.newest() is not before)
    assert certificate.newest_error is None


def test_a_pair_that_has_expired_replaces_none_that_will_be_valid(tmp_path: Path) -> None:
    issue(tmp_path, days_ago=-1)
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue(tmp_path, days_ago=31)
    assert certificate.newest() is before


def test_a_pair_that_is_not_valid_yet_replaces_one_that_is_not_either(tmp_path: Path) -> None:
    issue(tmp_path, days_ago=-2)
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue(tmp_path, days_ago=-1)
    assert certificate.newest() is not before


def with_end(pem: bytes, time: bytes) -> bytes:
    """Give a certificate another end of its validity, in a form that OpenSSL loads and no library reads."""
    der = bytearray(ssl.PEM_cert_to_DER_cert(pem.decode()))
    (end,) = [one.end() for one in re.finditer(rb"\x17\x0d[0-9]{12}Z(?=\x30)", bytes(der))]
    validity = bytes(der).rindex(b"\x30\x1e", 0, end)
    for begin, stop in ((2, 4), (6, 8), (validity + 1, validity + 2)):  # of the lengths of what it is in
        der[begin:stop] = (int.from_bytes(der[begin:stop]) + len(time) - 13).to_bytes(stop - begin)
    der[end - 14 : end] = bytes([len(time)]) + time
    return ssl.DER_cert_to_PEM_cert(bytes(der)).encode()


@pytest.mark.parametrize("time", [b"2601010000Z", b"260101000000+0000"])
def test_a_pair_whose_end_cannot_be_read_is_not_taken(tmp_path: Path, time: bytes) -> None:
    issue(tmp_path, days_ago=0)
    certificate = ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    before = certificate.newest()
    issue(tmp_path, days_ago=1)
    (tmp_path / "tls.crt").write_bytes(with_end((tmp_path / "tls.crt").read_bytes(), time))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    assert certificate.newest() is before
    assert "tls.crt: until when it is valid cannot be read" in str(certificate.newest_error)
    with pytest.raises(CertificateError, match="cannot be read"):
        ServingCertificate(tmp_path / "tls.crt", tmp_path / "tls.key")
