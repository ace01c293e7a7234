"""What answers in place of the API server, or is cut short on its way to the plugin."""

import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from certs.issuer import issue_to_directory
from plugin.dra.api_server import ApiError, ApiServer, path_of_node
from tests.serving import serving

NODE = path_of_node("node-1")
DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000


@pytest.mark.parametrize("content", [b"", b'{"metadata"', b"<html>", b"[]", b"null", b'{"a": "\xff"}', DEEP])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (200, r"its answer is cut short, or no object: .+$"),
        (500, r"500 Internal Server Error: see the API server's log$"),
    ],
)
def test_an_answer_that_is_no_object_is_one_line(tmp_path: Path, content: bytes, status: int, said: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    issue_to_directory(tmp_path, ["localhost"])
    (tmp_path / "token").write_text("token")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    with serving(server) as port, pytest.raises(ApiError, match=rf"^cannot GET {NODE}: {said}"):
        ApiServer("localhost", port, credentials=tmp_path).get(NODE)
