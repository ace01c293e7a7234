"""The real webhook with requests that no API server sends, one behind the other."""

from tests.webhook.raw_http import answer
from tests.webhook.serving import Server, review_of, wait_for

POST = b"POST /mutate HTTP/1.1\r\nHost: l\r\n%bContent-Length: %d\r\n\r\n"


def test_a_connection_ends_with_the_answer_to_a_request_for_another_protocol(server: Server) -> None:
    with server.tls() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: l\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        connection.settimeout(2)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 200")
    assert b"\r\nConnection: close\r\n" in received


def test_who_waits_to_be_asked_for_a_body_is_asked_after_the_answer_before_it(server: Server) -> None:
    body = review_of()
    with server.tls() as connection:
        connection.settimeout(5)
        connection.sendall(POST % (b"", len(body)) + body + POST % (b"Expect: 100-continue\r\n", len(body)))
        received = bytearray()

        def has(status: bytes) -> bool:
            received.extend(connection.recv(65536))
            return received.count(b"HTTP/1.1 " + status) > 0

        wait_for(lambda: has(b"100 Continue"))
        connection.sendall(body)
        wait_for(lambda: has(b"200") and received.count(b"HTTP/1.1 200") == 2)


def test_who_asked_and_had_no_body_is_not_told_to_go_on_in_its_next_request(server: Server) -> None:
    request = POST % (b"", 2) + b"{}"
    with server.tls() as connection:
        connection.settimeout(5)
        connection.sendall(POST % (b"Expect: 100-continue\r\n", 0) + request[:9])
        assert answer(connection)[0] == 400
        with server.caller() as caller:
            caller.ask("GET", "/healthz")  # the worker has seen the beginning by the time it answers this
        connection.sendall(request[9:])
        assert answer(connection)[0] == 400
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n")
        assert answer(connection)[0] == 200


def test_a_review_that_asks_for_another_protocol_is_told_that_its_body_is_not_read(server: Server) -> None:
    body = review_of()
    with server.tls() as connection:
        connection.settimeout(5)
        connection.sendall(POST % (b"Connection: Upgrade\r\nUpgrade: websocket\r\n", len(body)) + body)
        status, _, text = answer(connection)
        assert (status, text) == (400, "A body beside Upgrade or CONNECT is not read: send the request without them.\n")
