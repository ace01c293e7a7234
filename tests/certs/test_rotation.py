from dataclasses import replace
from datetime import timedelta

import pytest

from certs.issuer import new_authority
from certs.pem import dns_names, read_certificates, write_certificates
from certs.rotation import PUBLISHED, State, WriteAuthority, WriteServing, next_write
from tests.certs.rotation_states import (
    ALMOST,
    EMPTY,
    NAMES,
    NOW,
    RULES,
    SETTLED,
    number_trusted,
    overlapping,
    passed,
    serving,
)


def test_one_pass_makes_everything_out_of_nothing_in_an_order_that_can_stop_anywhere() -> None:
    state, reasons = passed(EMPTY, NOW)
    assert reasons == [
        "there is no authority",
        "the authority is not in the bundle",
        "the authority is in the bundle from now on",
        "the serving certificate is missing or cannot be read",
        "the serving certificate is in its Secret from now on",
    ]
    assert dns_names(read_certificates(serving(state))[0]) == set(NAMES)
    assert state.bundle == state.authority["ca.crt"]
    assert passed(state, NOW + timedelta(days=19, hours=23))[1] == []


def test_without_a_webhook_the_secrets_are_made_and_nothing_is_recorded() -> None:
    state, reasons = passed(replace(EMPTY, bundle=None), NOW)
    assert reasons == ["there is no authority", "the serving certificate is missing or cannot be read"]
    assert state.marks == {}
    assert passed(replace(state, bundle=b""), NOW)[1][0] == "the authority is not in the bundle"


def test_a_serving_certificate_is_renewed_when_a_third_of_its_life_is_left(good: State) -> None:
    later = NOW + timedelta(days=20)
    assert passed(good, later - timedelta(minutes=5))[1] == []
    state, reasons = passed(good, later)
    assert reasons[0] == "a third of the serving certificate's life is left"
    assert state.authority == good.authority
    assert serving(state) != serving(good)


def test_a_renewal_of_the_authority_takes_three_passes_with_time_between(good: State) -> None:
    day = NOW + timedelta(days=244)
    good = passed(good, day - timedelta(days=10))[0]
    first, reasons = passed(good, day)
    assert reasons[0] == "a third of the authority's life is left"
    assert (number_trusted(first), serving(first)) == (2, serving(good))
    assert first.authority["old.crt"] == good.authority["ca.crt"]
    assert passed(first, day + ALMOST) == (first, [])

    second, reasons = passed(first, day + SETTLED)
    assert reasons[0] == "the serving certificate is not of the newest authority"
    assert (number_trusted(second), serving(second) != serving(good)) == (2, True)
    assert passed(second, day + SETTLED + ALMOST) == (second, [])

    third, reasons = passed(second, day + 2 * SETTLED)
    assert third.bundle == third.authority["ca.crt"] != good.bundle
    assert set(third.authority) == {"ca.crt", "ca.key"}
    assert serving(third) == serving(second)


@pytest.mark.parametrize("lost", [{}, {"tls.crt": b"garbage", "tls.key": b""}], ids=["deleted", "garbage"])
def test_while_a_new_authority_waits_the_old_one_replaces_a_lost_certificate(lost: dict[str, bytes]) -> None:
    state, day = overlapping()
    write = next_write(replace(state, serving=lost), rules=RULES, now=day + timedelta(minutes=1))
    assert isinstance(write, WriteServing)
    old, leaf = (read_certificates(pem)[0] for pem in (state.authority["old.crt"], write.pair.certificate_pem))
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
def test_a_time_that_cannot_be_is_recorded_anew_and_waited_for(text: str) -> None:
    state, day = overlapping()
    fingerprint = state.marks[PUBLISHED].partition(" ")[0]
    state = replace(state, marks={**state.marks, PUBLISHED: text.format(fingerprint=fingerprint)})
    later = day + timedelta(hours=1)
    state, reasons = passed(state, later)
    assert reasons == ["the authority is in the bundle from now on"]
    assert passed(state, later + ALMOST)[1] == []
    assert passed(state, later + SETTLED)[1][0] == "the serving certificate is not of the newest authority"


def test_a_bundle_that_lost_the_new_authority_gets_it_back_and_the_wait_begins_anew() -> None:
    state, day = overlapping()
    later = day + timedelta(hours=1)
    state = replace(state, bundle=state.authority["old.crt"])
    first = next_write(state, rules=RULES, now=later)
    assert isinstance(first, WriteAuthority), "the time goes before the bundle is written"
    assert first.marks == {PUBLISHED: None}
    state, reasons = passed(state, later)
    assert len(reasons) == 3
    assert number_trusted(state) == 2
    assert passed(state, later + ALMOST)[1] == []


def test_what_is_written_is_what_is_read() -> None:
    authorities = [new_authority(now=NOW).certificate for _ in range(3)]
    assert read_certificates(write_certificates([*authorities, authorities[0]])) == tuple(authorities)


def test_an_authority_that_is_due_waits_until_the_one_before_has_gone() -> None:
    state, day = overlapping()
    later = day + timedelta(days=300)  # no pass for ten months
    state, reasons = passed(state, later)
    assert "a third of the authority's life is left" not in reasons
    state, reasons = passed(state, later + SETTLED)
    assert reasons[0] == "no certificate of the old authority is served any more"
    assert reasons[1] == "a third of the authority's life is left"
    assert passed(state, later + 2 * SETTLED)[0].authority["ca.crt"] == state.authority["ca.crt"]
