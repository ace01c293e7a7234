"""From when until when a certificate is valid, read from its own bytes."""

import contextlib
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from program.certificates import first_certificate
from webhook.validity import validity_of

MARK = b"\xef\xbb\xbf"  # of UTF-8, as some editors put it before a file
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def certificate(end: datetime, *, begin: datetime = BEGIN, names: int = 1, key: object = None) -> bytes:
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x" * 60)] * names)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())  # type: ignore[attr-defined] # either kind of key has one
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )
    signed = built.sign(key, hashes.SHA256())  # type: ignore[arg-type] # likewise
    return signed.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize(
    "end",
    [
        datetime(2026, 11, 22, 3, 4, 5, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),  # from here on another form of time
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
@pytest.mark.parametrize("names", [1, 10])
def test_the_end_is_the_one_that_a_library_reads(end: datetime, names: int) -> None:
    assert validity_of(certificate(end, names=names)) == (BEGIN.timestamp(), end.timestamp())


@pytest.mark.parametrize("year", [1950, 1969, 1999, 2000, 2049, 2050, 2068])
def test_the_begin_is_the_one_that_a_library_reads(year: int) -> None:
    begin, end = datetime(year, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    assert validity_of(certificate(end, begin=begin)) == (begin.timestamp(), end.timestamp())


def test_of_a_chain_the_first_certificate_counts(certificates: Path) -> None:
    pem = (certificates / "tls.crt").read_bytes()
    key = (certificates / "tls.key").read_bytes()
    other = certificate(datetime(2050, 1, 1, tzinfo=UTC), key=rsa.generate_private_key(65537, 2048))
    first = x509.load_pem_x509_certificate(pem)
    expected = (first.not_valid_before_utc.timestamp(), first.not_valid_after_utc.timestamp())
    assert validity_of(b"some text\n" + pem + other) == expected
    for name in (b"X509 ", b"TRUSTED "):  # which OpenSSL serves as well
        named = pem.replace(b"BEGIN ", b"BEGIN " + name).replace(b"END ", b"END " + name)
        assert validity_of(named + other) == expected
        assert first_certificate(named + other) is None  # what others read is another one
    begin = b"-----BEGIN CERTIFICATE-----"
    for before in (
        MARK,
        key + MARK,
        key.replace(b"\n", b"\r\n") + MARK,
        b"some text\n" + MARK + other,
        MARK * 2 + other,
    ):
        # OpenSSL skips one mark, where it begins to look for a certificate.
        assert validity_of(before + pem) == expected
        assert first_certificate(before + pem) == first
    for before in (
        b"# with " + begin + b" in it\n",
        b" " + other,
        begin + b"MII\n",
        (b" " + begin + b"\n") * 40_000,
        begin + b"\n" * 1_000_000 + b"-\n",
    ):
        assert validity_of(before + pem) == expected  # of what OpenSSL serves: its lines are their own
        served = first_certificate(before + pem)
        assert served is not None
        assert served.serial_number == first.serial_number


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----",
        b"-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----",
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----",
    ],
)
def test_the_validity_of_what_is_no_certificate_is_not_known(pem: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        validity_of(pem)


def test_no_damage_makes_it_fail() -> None:
    chance = random.Random(1)  # noqa: S311 - the same damage in every run
    pem = bytearray(certificate(datetime(2030, 1, 1, tzinfo=UTC)))
    for _ in range(3000):
        damaged = bytearray(pem)
        for _ in range(3):
            damaged[chance.randrange(28, len(pem) - 26)] = chance.choice(b"ABCDwxyz0189+/=")
        with contextlib.suppress(ValueError):
            found = validity_of(bytes(damaged[: chance.randrange(60, len(pem))] + b"-----END CERTIFICATE-----"))
            assert max(found) < 2.6e11
