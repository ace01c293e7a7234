"""Of a ClientHello OpenSSL gets all or nothing, and nothing of one for which it would take much memory."""

import hashlib
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.hellos import (
    PADDING,
    client_context,
    hello,
    hello_of_openssl,
    names,
    of_tls13,
    records,
    responders,
    uint16,
    vector,
)
from webhook.client_hello import ClientHellos
from webhook.settings import MAX_CIPHER_BYTES, MAX_HELLO_BYTES, MAX_LIST_BYTES

NINE_BYTES = bytes.fromhex("16 0301 0004 01020140")  # of a hello with 131,392 bytes
SERVER_HELLO = b"\x16\3\3\0\x7a\2\0\0\x76\3\3"
RETRY = SERVER_HELLO + hashlib.sha256(b"HelloRetryRequest").digest() + bytes(80)
OTHER_FLIGHT = SERVER_HELLO + bytes(112)
CHANGE_CIPHER = b"\x14\3\3\0\1\1"
ALERT = b"\x15\3\3\0\2\2\x28"

OFFENCES = {
    "131,392 bytes declared": NINE_BYTES,
    "its head in two records": bytes.fromhex("16 0301 0001 01  16 0301 0003 020140"),
    "8,193 bytes declared": records(b"\1\0\x20\1"),
    "a record of 16 KiB": b"\x16\3\1\x40\0\1",
    "an empty record": b"\x16\3\1\0\0",
    "65 records": records(hello(), (1,) * 65)[: 65 * 6],
    "an empty record in a hello": records(hello(), (20, 0))[:30],
    "many suites": records(hello(ciphers=b"\xc0\x2c" * (MAX_CIPHER_BYTES // 2 + 1))),
    "names of CAs": records(hello(names(MAX_LIST_BYTES // 4))),
    "OCSP responders": records(hello(responders(MAX_LIST_BYTES // 6))),
    "names of CAs after the largest extension": records(hello((PADDING, bytes(4000)), names(1000))),
    "a hello and a byte in its record": records(hello() + b"\x16"),
    "an alert in a hello": records(hello(), (20,))[:25] + ALERT,
    "another version in a hello": records(hello(), (20,))[:25] + b"\x16\4\1\0\1\1",
    "a hello of SSL 2.0": bytes.fromhex("802c 01 0303 0003 0000 0020 00c02f") + bytes(32),
}
NO_TLS = [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 20, b"\xff" * 20, ALERT, CHANGE_CIPHER, b"\x16\4\1\0\5hello"]


def clients() -> list[ssl.SSLContext]:
    versions = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    return [client_context(version, curve=curve) for version in versions for curve in (None, "prime256v1", "X25519")]


USUAL = [hello_of_openssl(context) for context in clients()]
LARGEST = hello((PADDING, bytes(MAX_HELLO_BYTES - len(hello()) - 9)))


def outcome(pieces: list[bytes], hellos: ClientHellos | None = None) -> bytes | None:
    """What of all *pieces* together is admitted, or None if one of them is an offence: then nothing must be before."""
    hellos = hellos or ClientHellos()
    admitted = b""
    try:
        for piece in pieces:
            admitted += hellos.admit(piece)
    except ConnectionAbortedError:
        return None
    return admitted


def single_bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def second() -> ClientHellos:
    """What looks at the hello after a HelloRetryRequest."""
    hellos = ClientHellos()
    hellos.admit(USUAL[-1])
    hellos.go_on_after(RETRY)
    return hellos


@pytest.mark.parametrize("usual", USUAL, ids=range(len(USUAL)))
def test_a_usual_hello_is_admitted(usual: bytes) -> None:
    assert outcome([usual]) == outcome(single_bytes(usual)) == usual


@pytest.mark.parametrize("sizes", [(), (1,), (1, 2), (3, 1, 1), (3, 2, 40, 1)])
def test_a_hello_in_several_records_is_admitted(sizes: tuple[int, ...]) -> None:
    data = records(hello(), sizes)
    assert outcome([data]) == outcome(single_bytes(data)) == data


def test_the_largest_hello_is_admitted_and_a_larger_one_is_not() -> None:
    assert len(records(LARGEST)) == MAX_HELLO_BYTES
    assert outcome([records(LARGEST)]) == records(LARGEST)
    assert outcome([records(LARGEST, (1,))]) is None


def test_the_longest_lists_are_admitted() -> None:
    data = records(hello((16, vector(bytes(MAX_LIST_BYTES - 2))), ciphers=b"\xc0\x2c" * (MAX_CIPHER_BYTES // 2)))
    assert outcome([data]) == data


@pytest.mark.parametrize("offence", OFFENCES.values(), ids=OFFENCES)
def test_openssl_gets_nothing_of_an_offence(offence: bytes) -> None:
    hellos = ClientHellos()
    with pytest.raises(ConnectionAbortedError):  # noqa: PT012
        for piece in single_bytes(offence):
            assert hellos.admit(piece) == b""
    assert outcome([offence]) is None


@pytest.mark.parametrize(
    "more", [b"\x16", CHANGE_CIPHER, records(hello(*of_tls13()))], ids=["a byte", "a change of cipher", "a hello"]
)
def test_what_comes_behind_a_hello_is_held_until_that_is_answered(more: bytes) -> None:
    first = records(hello(*of_tls13()))
    hellos = ClientHellos()
    assert hellos.admit(first + more) == first
    assert hellos.admit(more) == b""
    hellos.go_on_after(OTHER_FLIGHT)
    assert hellos.admit(b"\x17") == more + more + b"\x17"


def test_an_offence_behind_a_hello_is_one_where_it_is_a_second_hello() -> None:
    hellos = ClientHellos()
    assert hellos.admit(USUAL[-1] + NINE_BYTES) == USUAL[-1]
    hellos.go_on_after(RETRY)
    with pytest.raises(ConnectionAbortedError):
        hellos.admit(b"")


def test_nothing_is_admitted_of_nine_bytes_that_declare_much() -> None:
    assert outcome(single_bytes(NINE_BYTES[:-1])) == b""
    assert outcome(single_bytes(NINE_BYTES)) is None


@pytest.mark.parametrize("data", [*NO_TLS, bytes(9000)], ids=range(len(NO_TLS) + 1))
def test_what_does_not_begin_tls_goes_to_openssl_which_says_why_it_ends(data: bytes) -> None:
    assert outcome([data]) == outcome(single_bytes(data)) == data


def test_a_hello_with_lengths_that_lead_beyond_it_goes_to_openssl() -> None:
    for length in range(len(hello()) - 4):
        data = records(b"\1" + length.to_bytes(3, "big") + hello()[4 : 4 + length])
        assert outcome([data]) == data


@pytest.mark.parametrize("in_front", [b"\x14\3\1\0\0", b"\x15\3\1\0\2\1\x29"], ids=["nothing", "an alert"])
def test_openssl_gets_what_is_in_front_of_an_offence_in_a_record_of_another_type_and_no_more(in_front: bytes) -> None:
    hellos = ClientHellos()
    assert hellos.admit(in_front) == in_front
    with pytest.raises(ConnectionAbortedError):
        hellos.admit(NINE_BYTES)


@pytest.mark.parametrize("in_front", [b"", CHANGE_CIPHER])
def test_after_a_retry_the_second_hello_is_looked_at_as_well(in_front: bytes) -> None:
    assert outcome([in_front + USUAL[-1]], second()) == in_front + USUAL[-1]
    assert outcome(single_bytes(in_front + USUAL[-1]), second()) == in_front + USUAL[-1]
    for offence in OFFENCES.values():
        assert outcome([in_front + offence], second()) is None


def test_after_a_retry_an_alert_goes_to_openssl_at_once() -> None:
    assert outcome([ALERT], second()) == ALERT


@pytest.mark.parametrize("flights", [[OTHER_FLIGHT], [RETRY, OTHER_FLIGHT]])
def test_after_another_answer_nothing_is_looked_at(flights: list[bytes]) -> None:
    hellos = ClientHellos()
    for flight in flights:
        hellos.admit(USUAL[-1])
        assert not hellos.is_over
        hellos.go_on_after(flight)
    assert hellos.is_over


def test_a_flight_before_the_hello_is_whole_ends_nothing() -> None:
    hellos = ClientHellos()
    hellos.admit(USUAL[-1][:-1])
    hellos.go_on_after(OTHER_FLIGHT)
    assert not hellos.is_over
    assert outcome([USUAL[-1][-1:]], hellos) == USUAL[-1]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """What a caller may send: hellos, offences, anything."""
    message = draw(st.sampled_from([hello(), *(usual[5:] for usual in USUAL)]))
    sizes = tuple(draw(st.lists(st.integers(1, 30), max_size=4)))
    made = draw(
        st.sampled_from([records(message, sizes), *(one for one in OFFENCES.values() if len(one) < 2000), *NO_TLS])
    )
    if draw(st.booleans()):
        changed = bytearray(made)
        changed[draw(st.integers(0, min(len(made), 60) - 1))] = draw(st.integers(0, 255))
        made = bytes(changed)
    return made + draw(st.binary(max_size=9))


@given(data=streams(), cuts=st.lists(st.integers(0, MAX_HELLO_BYTES)), after_retry=st.booleans())
def test_pieces_cut_anywhere_are_the_same_as_the_whole(data: bytes, cuts: list[int], *, after_retry: bool) -> None:
    ends = sorted({*cuts, len(data)})
    pieces = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert outcome(pieces, second() if after_retry else None) == outcome([data], second() if after_retry else None)


@given(st.integers(MAX_HELLO_BYTES, 0xFFFFFF), st.integers(0, 255), st.integers(1, 3))
def test_a_message_of_any_type_that_declares_more_than_a_hello_has_is_an_offence(
    declared: int, kind: int, size: int
) -> None:
    message = bytes([kind]) + declared.to_bytes(3, "big")
    for data in (records(message), records(message, (size,))):
        assert outcome(single_bytes(data)) is None
        assert outcome([data[: len(data) - 3]]) == b""


def test_a_random_that_is_not_of_a_retry_is_of_another_flight() -> None:
    hellos = ClientHellos()
    hellos.admit(USUAL[0])
    hellos.go_on_after(uint16(0))
    assert hellos.is_over
