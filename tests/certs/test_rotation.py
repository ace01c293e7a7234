from dataclasses import replace
from datetime import timedelta

import pytest

from certs.issuer import new_ca
from certs.pem import dns_names, write_certificates
from certs.rotation import PUBLISHED, State, WriteCA, WriteServing, next_write
from program.certificates import read_certificates
from tests.certs.rotation_states import (
    ALMOST_SETTLED,
    EMPTY,
    NAMES,
    NOW,
    SETTINGS,
    SETTLED,
    after_pass,
    overlapping,
    serving,
    trusted_cas,
)


def test_a_first_pass_writes_everything_in_an_order_that_can_stop_anywhere() -> None:
    state, reasons = after_pass(EMPTY, NOW)
    assert reasons == [
        "there is no CA",
        "the CA is missing from the CA bundle",
        "the CA is in the CA bundle: its settle time starts",
        "the serving certificate is missing or invalid",
        "the serving certificate is in its Secret: its settle time starts",
    ]
    assert dns_names(read_certificates(serving(state))[0]) == set(NAMES)
    assert state.bundle == state.ca["ca.crt"]
    assert after_pass(state, NOW + timedelta(days=19, hours=23))[1] == []


def test_without_a_webhook_the_secrets_are_written_and_no_time_is_recorded() -> None:
    state, reasons = after_pass(replace(EMPTY, bundle=None), NOW)
    assert reasons == ["there is no CA", "the serving certificate is missing or invalid"]
    assert state.annotations == {}
    assert after_pass(replace(state, bundle=b""), NOW)[1][0] == "the CA is missing from the CA bundle"


def test_a_serving_certificate_is_renewed_when_a_third_of_its_lifetime_is_left(installed: State) -> None:
    later = NOW + timedelta(days=20)
    assert after_pass(installed, later - timedelta(minutes=5))[1] == []
    state, reasons = after_pass(installed, later)
    assert reasons[0] == "a third of the serving certificate's lifetime is left"
    assert state.ca == installed.ca
    assert serving(state) != serving(installed)


def test_a_rotation_of_the_ca_takes_three_passes_a_settle_time_apart(installed: State) -> None:
    day = NOW + timedelta(days=244)
    installed = after_pass(installed, day - timedelta(days=10))[0]
    first, reasons = after_pass(installed, day)
    assert reasons[0] == "a third of the CA's lifetime is left"
    assert (trusted_cas(first), serving(first)) == (2, serving(installed))
    assert first.ca["old.crt"] == installed.ca["ca.crt"]
    assert after_pass(first, day + ALMOST_SETTLED) == (first, [])

    second, reasons = after_pass(first, day + SETTLED)
    assert reasons[0] == "the serving certificate was not issued by the newest CA"
    assert (trusted_cas(second), serving(second) != serving(installed)) == (2, True)
    assert after_pass(second, day + SETTLED + ALMOST_SETTLED) == (second, [])

    third, reasons = after_pass(second, day + 2 * SETTLED)
    assert third.bundle == third.ca["ca.crt"] != installed.bundle
    assert set(third.ca) == {"ca.crt", "ca.key"}
    assert serving(third) == serving(second)


@pytest.mark.parametrize("lost", [{}, {"tls.crt": b"garbage", "tls.key": b""}], ids=["deleted", "garbage"])
def test_while_a_new_ca_settles_the_old_one_issues_a_lost_certificate_again(lost: dict[str, bytes]) -> None:
    state, day = overlapping()
    write = next_write(replace(state, serving=lost), settings=SETTINGS, now=day + timedelta(minutes=1))
    assert isinstance(write, WriteServing)
    old, leaf = (read_certificates(pem)[0] for pem in (state.ca["old.crt"], write.pair.certificate_pem))
    leaf.verify_directly_issued_by(old)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "{fingerprint} yesterday",
        "{fingerprint} 2026-05-01T12:00:00",
        "{fingerprint} 2199-01-01T00:00:00Z",
    ],
    ids=["none", "garbage", "no time", "no zone", "the future"],
)
def test_an_invalid_time_is_recorded_again_and_the_settle_time_starts_again(text: str) -> None:
    state, day = overlapping()
    fingerprint = state.annotations[PUBLISHED].partition(" ")[0]
    state = replace(state, annotations={**state.annotations, PUBLISHED: text.format(fingerprint=fingerprint)})
    later = day + timedelta(hours=1)
    state, reasons = after_pass(state, later)
    assert reasons == ["the CA is in the CA bundle: its settle time starts"]
    assert after_pass(state, later + ALMOST_SETTLED)[1] == []
    assert after_pass(state, later + SETTLED)[1][0] == "the serving certificate was not issued by the newest CA"


def test_a_new_ca_missing_from_the_ca_bundle_is_added_and_its_settle_time_starts_again() -> None:
    state, day = overlapping()
    later = day + timedelta(hours=1)
    state = replace(state, bundle=state.ca["old.crt"])
    first = next_write(state, settings=SETTINGS, now=later)
    assert isinstance(first, WriteCA), "the time goes before the bundle is written"
    assert first.annotations == {PUBLISHED: None}
    state, reasons = after_pass(state, later)
    assert len(reasons) == 3
    assert trusted_cas(state) == 2
    assert after_pass(state, later + ALMOST_SETTLED)[1] == []


def test_certificates_are_read_as_they_were_written_without_duplicates() -> None:
    cas = [new_ca(now=NOW).certificate for _ in range(3)]
    assert read_certificates(write_certificates([*cas, cas[0]])) == tuple(cas)


def test_a_ca_that_is_due_is_renewed_only_after_the_old_one_is_removed() -> None:
    state, day = overlapping()
    later = day + timedelta(days=300)  # no pass for ten months
    state, reasons = after_pass(state, later)
    assert "a third of the CA's lifetime is left" not in reasons
    state, reasons = after_pass(state, later + SETTLED)
    assert reasons[0] == "no pod serves a certificate of the old CA any more"
    assert reasons[1] == "a third of the CA's lifetime is left"
    assert after_pass(state, later + 2 * SETTLED)[0].ca["ca.crt"] == state.ca["ca.crt"]
