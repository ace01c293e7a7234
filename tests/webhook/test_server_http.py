"""Requests and their answers over HTTP: what is served, what is denied, and what is no HTTP."""

import json
import ssl
from collections.abc import Callable

import pytest

from tests.webhook.raw_http import answer, post
from tests.webhook.serving import Server, review_of


def test_reviews_are_answered_on_a_connection_that_is_kept(server: Server) -> None:
    with server.caller() as caller:
        caller.connection.connect()
        kept = caller.connection.sock
        for number in range(3):
            status, text = caller.ask("POST", "/mutate?timeout=3s", review_of(uid=f"uid-{number}"))
            response = json.loads(text)["response"]
            assert (status, response["uid"], response["allowed"]) == (200, f"uid-{number}", True)
            assert response["patchType"] == "JSONPatch"
            assert caller.connection.sock is kept


def test_a_share_above_the_policy_is_denied_in_a_review_and_not_by_a_status(server: Server) -> None:
    with server.caller() as caller:
        assert not caller.allowed(review_of("0.9"))


def one_field(**changes: object) -> bytes:
    return json.dumps(json.loads(review_of()) | changes).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="missing"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"{", id="not JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"[" * 1000 + b"]" * 1000, id="nested 1,000 deep"),
        pytest.param(one_field(kind="Pod"), id="no AdmissionReview"),
        pytest.param(one_field(apiVersion="admission.k8s.io/v1beta1"), id="an old version"),
        pytest.param(one_field(request=None), id="no request"),
        pytest.param(review_of(env="PATH=/"), id="a pod with a field of the wrong type"),
    ],
)
def test_a_bad_call_is_a_400_with_one_sentence_and_the_connection_goes_on(server: Server, body: bytes) -> None:
    with server.caller() as caller:
        status, text = caller.ask("POST", "/mutate", body)
        assert status == 400
        assert caller.connection.sock is not None
        assert text.endswith("\n")
        assert text.count("\n") == 1
        assert "Traceback" not in text
        assert "<" not in text
        assert caller.allowed(review_of())


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/", 404, None),
        ("POST", "/mutate/x", 404, None),
        ("POST", "/mutate/", 404, None),
        ("GET", "/mutate", 405, "POST"),
        ("PUT", "/mutate/restricted", 405, "POST"),
        ("POST", "/readyz", 405, "GET, HEAD"),
        ("OPTIONS", "/healthz?verbose", 405, "GET, HEAD"),
    ],
)
def test_anything_else_is_rejected_in_plain_text(
    server: Server, method: str, path: str, status: int, allowed: str | None
) -> None:
    with server.caller() as caller:
        caller.connection.request(method, path, b"{}" if method in ("POST", "PUT") else None)
        response = caller.connection.getresponse()
        assert response.status == status
        assert response.headers.get_content_type() == "text/plain"
        assert b"<" not in response.read()
        assert response.headers["Allow"] == allowed


def test_health_and_readiness_are_plain(server: Server) -> None:
    with server.caller() as caller:
        assert caller.ask("GET", "/healthz") == (200, "ok\n")
        assert caller.ask("GET", "/readyz") == (200, "ready\n")


@pytest.mark.parametrize(
    "head",
    [
        b"NONSENSE\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\nTransfer-Encoding: rot13\r\n\r\n",
        b"GET /readyz HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_is_rejected_in_plain_text_and_cut_off(server: Server, head: bytes) -> None:
    with server.tls() as connection:
        connection.sendall(head)
        status, heading, body = answer(connection)
        assert status == 400
        assert "Connection: close" in heading
        assert "<" not in body
        assert connection.recv(1) == b""


@pytest.mark.parametrize("head", [b"CONNECT example.com:443 HTTP/1.1\r\n\r\n", b"GET /\x7f HTTP/1.1\r\n\r\n"])
def test_a_target_that_is_none_is_no_fault_of_ours(server: Server, head: bytes) -> None:
    with server.tls() as connection:
        connection.sendall(head)
        assert answer(connection)[0] == 400
    assert not [line for line in server.all_lines() if line["level"] == "error"]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
def test_tls_1_1_is_rejected(server: Server) -> None:
    context = server.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError) as caught, server.tls(context):
        pass
    assert caught.value.reason == "TLSV1_ALERT_PROTOCOL_VERSION"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_http_1_1_is_chosen_over_tls_1_2_and_1_3(server: Server, version: ssl.TLSVersion) -> None:
    context = server.context()
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with server.tls(context) as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"


def test_a_handshake_that_fails_is_logged_with_its_reason(server: Server) -> None:
    with pytest.raises(ssl.SSLCertVerificationError), server.tls(ssl.create_default_context()):
        pass
    with server.caller() as caller:
        caller.ask("GET", "/healthz")
    assert "TLSV1_ALERT_UNKNOWN_CA" in [line["reason"] for line in server.all_lines("handshake failed")]


def test_connections_that_end_without_a_word_leave_no_line(server: Server) -> None:
    before = len(server.all_lines())
    for _ in range(3):
        with server.tcp():
            pass
    with server.caller() as caller:
        caller.ask("GET", "/healthz")
    assert len(server.all_lines()) == before


def test_pipelined_requests_are_answered_in_their_order(server: Server) -> None:
    bodies = [review_of(uid=f"in-line-{number}") for number in range(50)]
    with server.tls() as connection:
        connection.sendall(b"".join([*map(post, bodies), b"NONSENSE\r\n\r\n"]))
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200"] * 50 + [b"400"]
    for number, one in enumerate(answers[:50]):
        assert f'"uid":"in-line-{number}"'.encode() in one


def test_an_answer_is_one_record_of_tls(server: Server) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = server.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with server.tcp() as connection:

        def until_done(step: Callable[[], object]) -> bytes:
            """Do *step*, and give what was received for it."""
            received = b""
            while True:
                try:
                    step()
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    received += (piece := connection.recv(65536))
                    incoming.write(piece)
                else:
                    connection.sendall(outgoing.read())
                    return received

        until_done(secured.do_handshake)
        secured.write(post(review_of()))
        received = until_done(lambda: secured.read(65536))
    assert received[0] == 23  # application data
    assert len(received) == 5 + int.from_bytes(received[3:5], "big")


@pytest.mark.parametrize(("target", "status"), [(b"/healthz", b"200"), (b"/mutate", b"405"), (b"/none", b"404")])
def test_a_head_request_is_answered_with_the_length_of_what_it_leaves_out(
    server: Server, target: bytes, status: bytes
) -> None:
    def answers(method: bytes) -> list[bytes]:
        with server.tls() as connection:
            connection.sendall(method + b" %s HTTP/1.1\r\nHost: l\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n" % target)
            return b"".join(iter(lambda: connection.recv(65536), b"")).split(b"HTTP/1.1 ")[1:]

    whole, _ = answers(b"GET" if target != b"/mutate" else b"PUT")
    first, second = answers(b"HEAD")
    length = len(whole.partition(b"\r\n\r\n")[2])
    assert first.startswith(status)
    assert b"\r\nContent-Length: %d\r\n" % length in first
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b"\r\n\r\nok\n")
