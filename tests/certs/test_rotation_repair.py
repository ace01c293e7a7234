from base64 import encodebytes
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from certs.issuer import CA, new_ca
from certs.pem import dns_names
from certs.rotation import SERVED, State, WriteCA, WriteServing, next_write
from program.certificates import read_certificates
from tests.certs.rotation_states import (
    ALMOST_SETTLED,
    NAMES,
    NOW,
    SETTINGS,
    SETTLED,
    after_pass,
    files,
    overlapping,
    serving,
    trusted_cas,
)

# Names of kinds that cryptography does not know, in extensions that it reads.
EDI_PARTY_NAME = bytes.fromhex("3008a506a1040c026162")
X400_ADDRESS = bytes.fromhex("3004a3020500")


def test_a_lost_ca_is_replaced_in_overlap_and_a_valid_certificate_stays(installed: State) -> None:
    state, reasons = after_pass(replace(installed, ca={}, annotations={}), NOW + timedelta(hours=1))
    assert reasons[0] == "there is no CA"
    assert (serving(state), trusted_cas(state)) == (serving(installed), 2)
    state, _ = after_pass(state, NOW + timedelta(hours=2))
    assert (serving(state) != serving(installed), trusted_cas(state)) == (True, 2)
    state, reasons = after_pass(state, NOW + timedelta(hours=3))
    assert trusted_cas(state) == 1


def other(_: State) -> CA:
    return new_ca(now=NOW)


@pytest.mark.parametrize(
    "entries",
    [
        lambda state: {"ca.key": other(state).pair.key_pem},
        lambda _: {"ca.key": b""},
        lambda _: {"ca.crt": b"\xff\x00"},
        lambda state: {"ca.crt": serving(state), "ca.key": state.serving["tls.key"]},
        lambda _: ca_files(new_ca(now=NOW - timedelta(days=366))),
        lambda _: ca_files(new_ca(now=NOW + timedelta(days=2))),
        lambda _: ca_files(odd_ca("2.5.29.17", EDI_PARTY_NAME)),
        lambda _: ca_files(odd_ca("2.5.29.18", X400_ADDRESS)),
    ],
    ids=[
        "key of another",
        "no key",
        "garbage",
        "no CA but a serving pair",
        "expired",
        "not yet valid",
        "for a name in EDI",
        "of an issuer with an X.400 address",
    ],
)
def test_a_ca_that_cannot_issue_is_replaced(installed: State, entries: Callable[[State], dict[str, bytes]]) -> None:
    state = replace(installed, ca={**installed.ca, **entries(installed)})
    state, reasons = after_pass(state, NOW + timedelta(hours=1))
    assert reasons[0] == "the CA is invalid: not valid now, or certificate and key do not match"
    assert serving(state) == serving(installed)
    assert installed.bundle is not None
    assert installed.bundle in (state.bundle or b"")


def odd_ca(extension: str, value: bytes) -> CA:
    """A CA that would be good, but for an extension that cryptography does not read."""
    good = new_ca(now=NOW)
    one = good.certificate
    builder = x509.CertificateBuilder(
        one.issuer, one.subject, one.public_key(), one.serial_number, one.not_valid_before_utc, one.not_valid_after_utc
    )
    for kept in one.extensions:
        builder = builder.add_extension(kept.value, kept.critical)
    odd = x509.UnrecognizedExtension(x509.ObjectIdentifier(extension), value)
    return CA(certificate=builder.add_extension(odd, critical=False).sign(good.key, hashes.SHA256()), key=good.key)


def ca_files(ca: CA) -> dict[str, bytes]:
    return {"ca.crt": ca.pair.certificate_pem, "ca.key": ca.pair.key_pem}


def test_a_certificate_of_someones_own_ca_stays_until_every_api_server_trusts_ours(installed: State) -> None:
    own = new_ca(now=NOW)
    bundle = (installed.bundle or b"") + own.pair.certificate_pem
    state = replace(installed, serving=files(own.issue(NAMES, now=NOW)), bundle=bundle, annotations={})
    first, reasons = after_pass(state, NOW)
    assert reasons == ["the CA is in the CA bundle: its settle time starts"]
    second, reasons = after_pass(first, NOW + SETTLED)
    assert reasons[0] == "the serving certificate was not issued by the newest CA"
    assert trusted_cas(second) == 2
    third, _ = after_pass(second, NOW + 2 * SETTLED)
    assert third.bundle == installed.bundle


def test_an_unknown_ca_is_removed_from_the_ca_bundle_when_no_certificate_needs_it(installed: State) -> None:
    unknown = new_ca(now=NOW).pair.certificate_pem
    state = replace(installed, bundle=unknown + (installed.bundle or b""))
    assert after_pass(state, NOW + ALMOST_SETTLED)[1] == []
    state, reasons = after_pass(state, NOW + SETTLED)
    assert reasons == ["no pod serves a certificate of the other CAs in the CA bundle any more"]
    assert state.bundle == installed.bundle


@pytest.mark.parametrize(
    "bundle", [b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"]
)
def test_an_invalid_ca_bundle_is_repaired_and_the_certificate_stays(installed: State, bundle: bytes) -> None:
    state, _ = after_pass(replace(installed, bundle=bundle), NOW + timedelta(hours=1))
    assert (state.bundle, serving(state)) == (installed.bundle, serving(installed))


def test_data_that_is_not_a_certificate_is_removed_from_the_ca_bundle(installed: State) -> None:
    state, reasons = after_pass(replace(installed, bundle=(installed.bundle or b"") + b"# ours\n\xff"), NOW)
    assert reasons == ["the CA bundle holds something other than certificates"]
    assert state.bundle == installed.bundle


@pytest.mark.parametrize("entry", ["bundle", "serving", "ca"])
def test_a_certificate_of_a_version_that_there_is_none_of_is_repaired(installed: State, entry: str) -> None:
    version, other = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x43"
    whole = read_certificates(installed.bundle or b"")[0].public_bytes(Encoding.DER)
    broken = b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n" % encodebytes(whole.replace(version, other))
    state = {
        "bundle": replace(installed, bundle=broken),
        "serving": replace(installed, serving={**installed.serving, "tls.crt": broken}),
        "ca": replace(installed, ca={**installed.ca, "ca.crt": broken}),
    }[entry]
    assert next_write(state, settings=SETTINGS, now=NOW) is not None


def test_a_certificate_for_other_names_is_replaced_at_once(installed: State) -> None:
    renamed = replace(SETTINGS, names=("other.gpu-share.svc",))
    write = next_write(installed, settings=renamed, now=NOW)
    assert isinstance(write, WriteServing)
    assert dns_names(read_certificates(write.pair.certificate_pem)[0]) == {"other.gpu-share.svc"}


def test_a_certificate_without_the_second_name_is_replaced_after_the_settle_time(installed: State) -> None:
    longer = replace(SETTINGS, names=(*NAMES, "another.svc"))
    assert next_write(installed, settings=longer, now=NOW + ALMOST_SETTLED) is None
    write = next_write(installed, settings=longer, now=NOW + SETTLED)
    assert isinstance(write, WriteServing)
    assert write.reason == "the serving certificate is for other DNS names"


def test_after_a_year_without_a_pass_one_pass_replaces_everything(installed: State) -> None:
    state, reasons = after_pass(installed, NOW + timedelta(days=400))
    assert len(reasons) == 5
    assert after_pass(state, NOW + timedelta(days=400, minutes=5))[1] == []


def test_after_eight_months_without_a_pass_the_old_ca_issues_until_the_new_one_has_settled(installed: State) -> None:
    state, _ = after_pass(installed, NOW + timedelta(days=250))
    leaf = read_certificates(serving(state))[0]
    leaf.verify_directly_issued_by(read_certificates(installed.ca["ca.crt"])[0])
    assert trusted_cas(state) == 2


def test_a_ca_or_serving_key_of_another_type_is_replaced(installed: State) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - once
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write = next_write(replace(installed, ca={**installed.ca, "ca.key": key}), settings=SETTINGS, now=NOW)
    assert isinstance(write, WriteCA)
    write = next_write(replace(installed, serving={**installed.serving, "tls.key": key}), settings=SETTINGS, now=NOW)
    assert isinstance(write, WriteServing)


def test_a_replaced_serving_certificate_starts_the_settle_time_again() -> None:
    state, day = overlapping()
    second = after_pass(state, day + SETTLED)[0]
    again = replace(second, serving={**state.serving})  # a person restores the previous one
    third, reasons = after_pass(again, day + 2 * SETTLED)
    assert reasons[0] == "the serving certificate was not issued by the newest CA"
    assert trusted_cas(third) == 2
    assert third.annotations[SERVED] != second.annotations[SERVED]
