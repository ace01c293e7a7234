"""Bytes to requests: whatever the pieces they come in, and whatever they are."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.http1 import Answer, Request, RequestParser, plain
from webhook.settings import MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_WAITING_REQUESTS

POST = b"POST /mutate?timeout=3s HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n{1,2}"
GET = b"GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{1\r\n3;x=y\r\n,2}\r\n0\r\nA: b\r\n\r\n"


def parsed(*pieces: bytes) -> RequestParser:
    parser = RequestParser()
    for piece in pieces:
        if not parser.is_over:
            parser.feed(memoryview(piece))
    return parser


@given(cuts=st.lists(st.integers(0, len(POST + GET + CHUNKED)), max_size=20))
def test_requests_are_the_same_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    sent = POST + GET + CHUNKED
    edges = [0, *sorted(cuts), len(sent)]
    parser = parsed(*(sent[begin:end] for begin, end in pairwise(edges)))
    assert [*parser.requests] == [
        Request("POST", b"/mutate?timeout=3s", b"{1,2}", is_last=False),
        Request("GET", b"/readyz", b"", is_last=False),
        Request("POST", b"/", b"{1,2}", is_last=True),
    ]
    assert parser.rejection is None
    assert parser.is_over


@given(st.binary(max_size=300), st.integers(0, len(POST)))
def test_no_bytes_raise_and_what_is_before_them_is_answered(noise: bytes, at: int) -> None:
    parser = parsed(POST, POST[:at] + noise + POST[at:])
    assert parser.requests[0].body == b"{1,2}"
    parser.end()


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0x5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
        b"POST / HTTP/1.1\nContent-Length: 5\n\n",
        b"POST / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nX\x00: a\r\n\r\n",
        b"POST / HTTP/2.0\r\n\r\n",
        b"POST / HTTP/1.2\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"post / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/1.1\r\nX: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * MAX_HEAD_BYTES,
        b"GET /" + b"x" * 2 * MAX_HEAD_BYTES,
        CHUNKED.removesuffix(b"\r\n") + b"X: " + b"x" * 2 * MAX_HEAD_BYTES,
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
    ],
)
def test_what_two_servers_could_read_in_two_ways_is_rejected(head: bytes) -> None:
    parser = parsed(head, POST)
    assert not parser.requests
    assert parser.rejection is not None
    assert parser.rejection.status == 400
    assert parser.rejection.body.count(b"\n") == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"100000\r\n%s\r\n" % bytes(1 << 20) * 8
        + b"1\r\n{\r\n",
    ],
)
def test_a_body_beyond_the_limit_is_rejected_before_its_end_and_not_kept(sent: bytes) -> None:
    parser = parsed(sent)
    assert parser.rejection is not None
    assert parser.rejection.status == 413
    assert parser.held_bytes == 0


@pytest.mark.parametrize(
    ("head", "is_last"),
    [
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", True),
    ],
)
def test_the_last_request_of_a_connection_is_known_as_such(head: bytes, *, is_last: bool) -> None:
    parser = parsed(head, POST)
    assert parser.requests[0].is_last == is_last
    assert len(parser.requests) == (2 if not parser.is_over else 1)


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        (b"", b"\r\n"),
        (b"GET /", b"x"),
        (b"GET / HTTP/1.1\r\n", b"x"),
        (b"GET / HTTP/1.1\r\nX: ", b"x"),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n1;a=", b"x"),
    ],
)
@pytest.mark.parametrize("at_once", [2000, 16_000])
def test_what_stands_beside_a_body_has_a_bound_though_it_has_no_end(
    begins: bytes, goes_on: bytes, at_once: int
) -> None:
    parser = parsed(begins, *[goes_on * (at_once // len(goes_on))] * (3 * MAX_HEAD_BYTES // at_once))
    assert parser.rejection is not None
    assert parser.rejection.status == 400


@pytest.mark.parametrize(("chunk_bytes", "is_taken"), [(1, False), (16, True), (4096, True)])
def test_a_body_in_more_chunks_than_anybody_sends_is_rejected_before_its_end(
    chunk_bytes: int, *, is_taken: bool
) -> None:
    chunks = b"%x\r\n%s\r\n" % (chunk_bytes, b" " * chunk_bytes) * max(1, 32 * 1024 // chunk_bytes)
    parser = parsed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", *[chunks[:16_000], chunks[16_000:]])
    assert (parser.rejection is None) == is_taken
    parser.feed(memoryview(b"0\r\n\r\n"))
    assert len(parser.requests) == is_taken


def test_a_request_that_begins_behind_a_long_one_is_not_counted_with_it() -> None:
    long = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (MAX_HEAD_BYTES, bytes(MAX_HEAD_BYTES))
    parser = parsed(long + POST[:30], POST[30:])
    assert len(parser.requests) == 2
    assert parser.rejection is None


def test_of_a_request_that_is_rejected_nothing_is_kept() -> None:
    parser = parsed(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n", b"{" * 99)
    assert parser.held_bytes == 99
    parser.reject(503, "Too much.")
    parser.feed(memoryview(b"{"))
    assert parser.held_bytes == 0


def test_a_caller_that_asks_before_it_sends_is_told_to_go_on() -> None:
    head = b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
    assert parsed(head).awaits_continue
    parser = parsed(head, b"{")
    assert parser.requests[0].body == b"{"
    parser = parsed(head.replace(b"100-C", b"200-C"))
    assert parser.rejection is not None
    assert parser.rejection.status == 417


@pytest.mark.parametrize("length", [b"", b"Content-Length: 0\r\n"])
def test_a_caller_that_asked_and_had_no_body_is_not_told_to_go_on_in_its_next_request(length: bytes) -> None:
    parser = parsed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\n" + length + b"\r\n", POST[:9])
    assert len(parser.requests) == 1
    assert parser.has_begun
    assert not parser.awaits_continue


@pytest.mark.parametrize("begins", [b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c", b"CONNECT h:1 HTTP/1.1"])
@pytest.mark.parametrize("body", [b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"])
def test_a_body_is_not_dropped_in_silence_where_another_protocol_is_asked_for(begins: bytes, body: bytes) -> None:
    parser = parsed(begins + b"\r\n" + body)
    assert not parser.requests
    assert parser.rejection is not None
    assert parser.rejection.body.startswith(b"A body beside Upgrade or CONNECT is not read:")


def test_an_answer_says_its_length_and_whether_it_is_the_last() -> None:
    head, _, body = plain("é", 413).written(is_last=True).partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 413 Request Entity Too Large", "é\n".encode())
    assert b"\r\nContent-Length: 3" in head
    assert head.endswith(b"\r\nConnection: close")
    assert b"Connection" not in Answer(200, b"").written(is_last=False)


def test_requests_that_come_before_they_can_be_answered_have_a_bound() -> None:
    parser = parsed(GET * (MAX_WAITING_REQUESTS + 1) * 2)
    assert len(parser.requests) == MAX_WAITING_REQUESTS
    assert parser.rejection is not None
    assert parser.rejection.status == 400
