from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from certs.issuer import Authority, new_authority
from certs.pem import dns_names, read_certificates
from certs.rotation import SERVED, State, WriteAuthority, WriteServing, next_write
from tests.certs.rotation_states import (
    ALMOST,
    NAMES,
    NOW,
    RULES,
    SETTLED,
    files,
    number_trusted,
    overlapping,
    passed,
    serving,
)


def test_a_lost_authority_is_replaced_in_overlap_and_what_works_goes_on(good: State) -> None:
    state, reasons = passed(replace(good, authority={}, marks={}), NOW + timedelta(hours=1))
    assert reasons[0] == "there is no authority"
    assert (serving(state), number_trusted(state)) == (serving(good), 2)
    state, _ = passed(state, NOW + timedelta(hours=2))
    assert (serving(state) != serving(good), number_trusted(state)) == (True, 2)
    state, reasons = passed(state, NOW + timedelta(hours=3))
    assert number_trusted(state) == 1


def other(_: State) -> Authority:
    return new_authority(now=NOW)


@pytest.mark.parametrize(
    "entries",
    [
        lambda state: {"ca.key": other(state).pair.key_pem},
        lambda _: {"ca.key": b""},
        lambda _: {"ca.crt": b"\xff\x00"},
        lambda state: {"ca.crt": serving(state), "ca.key": state.serving["tls.key"]},
        lambda _: dict(zip(("ca.crt", "ca.key"), vars_of(new_authority(now=NOW - timedelta(days=366))), strict=True)),
        lambda _: dict(zip(("ca.crt", "ca.key"), vars_of(new_authority(now=NOW + timedelta(days=2))), strict=True)),
    ],
    ids=["key of another", "no key", "garbage", "no authority but a serving pair", "expired", "of the future"],
)
def test_an_authority_that_cannot_sign_is_replaced(good: State, entries: Callable[[State], dict[str, bytes]]) -> None:
    state = replace(good, authority={**good.authority, **entries(good)})
    state, reasons = passed(state, NOW + timedelta(hours=1))
    assert reasons[0] == "the authority cannot be used: expired, or not a good pair"
    assert serving(state) == serving(good)
    assert good.bundle is not None
    assert good.bundle in (state.bundle or b"")


def vars_of(authority: Authority) -> tuple[bytes, bytes]:
    return authority.pair.certificate_pem, authority.pair.key_pem


def test_someones_own_certificate_goes_on_until_ours_is_trusted_everywhere(good: State) -> None:
    own = new_authority(now=NOW)
    bundle = (good.bundle or b"") + own.pair.certificate_pem
    state = replace(good, serving=files(own.issue(NAMES, now=NOW)), bundle=bundle, marks={})
    first, reasons = passed(state, NOW)
    assert reasons == ["the authority is in the bundle from now on"]
    second, reasons = passed(first, NOW + SETTLED)
    assert reasons[0] == "the serving certificate is not of the newest authority"
    assert number_trusted(second) == 2
    third, _ = passed(second, NOW + 2 * SETTLED)
    assert third.bundle == good.bundle


def test_a_strange_authority_in_the_bundle_leaves_when_no_certificate_needs_it(good: State) -> None:
    strange = new_authority(now=NOW).pair.certificate_pem
    state = replace(good, bundle=strange + (good.bundle or b""))
    assert passed(state, NOW + ALMOST)[1] == []
    state, reasons = passed(state, NOW + SETTLED)
    assert reasons == ["no certificate of the other authorities in the bundle is served any more"]
    assert state.bundle == good.bundle


@pytest.mark.parametrize(
    "bundle", [b"", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"]
)
def test_a_bundle_of_anything_is_repaired_and_the_certificate_stays(good: State, bundle: bytes) -> None:
    state, _ = passed(replace(good, bundle=bundle), NOW + timedelta(hours=1))
    assert (state.bundle, serving(state)) == (good.bundle, serving(good))


def test_garbage_beside_good_certificates_leaves_the_bundle(good: State) -> None:
    state, reasons = passed(replace(good, bundle=(good.bundle or b"") + b"# ours\n\xff"), NOW)
    assert reasons == ["the bundle holds what is no certificate"]
    assert state.bundle == good.bundle


def test_a_certificate_for_other_names_is_replaced_at_once(good: State) -> None:
    renamed = replace(RULES, names=("other.gpu-share.svc",))
    write = next_write(good, rules=renamed, now=NOW)
    assert isinstance(write, WriteServing)
    assert dns_names(read_certificates(write.pair.certificate_pem)[0]) == {"other.gpu-share.svc"}


def test_a_certificate_without_the_long_name_is_replaced_when_that_is_safe(good: State) -> None:
    longer = replace(RULES, names=(*NAMES, "another.svc"))
    assert next_write(good, rules=longer, now=NOW + ALMOST) is None
    write = next_write(good, rules=longer, now=NOW + SETTLED)
    assert isinstance(write, WriteServing)
    assert write.reason == "the serving certificate is for other names"


def test_after_a_year_without_a_pass_one_pass_makes_everything_anew(good: State) -> None:
    state, reasons = passed(good, NOW + timedelta(days=400))
    assert len(reasons) == 5
    assert passed(state, NOW + timedelta(days=400, minutes=5))[1] == []


def test_after_eight_months_without_a_pass_the_old_authority_signs_until_the_new_one_is_known(good: State) -> None:
    state, _ = passed(good, NOW + timedelta(days=250))
    leaf = read_certificates(serving(state))[0]
    leaf.verify_directly_issued_by(read_certificates(good.authority["ca.crt"])[0])
    assert number_trusted(state) == 2


def test_a_key_that_is_not_p_256_does_not_sign(good: State) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - once
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write = next_write(replace(good, authority={**good.authority, "ca.key": key}), rules=RULES, now=NOW)
    assert isinstance(write, WriteAuthority)
    write = next_write(replace(good, serving={**good.serving, "tls.key": key}), rules=RULES, now=NOW)
    assert isinstance(write, WriteServing)


def test_a_served_certificate_that_changes_is_waited_for_again() -> None:
    state, day = overlapping()
    second = passed(state, day + SETTLED)[0]
    again = replace(second, serving={**state.serving})  # someone puts the one before back
    third, reasons = passed(again, day + 2 * SETTLED)
    assert reasons[0] == "the serving certificate is not of the newest authority"
    assert number_trusted(third) == 2
    assert third.marks[SERVED] != second.marks[SERVED]
