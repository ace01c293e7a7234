"""The real webhook with requests that no API server sends, one behind the other."""

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
