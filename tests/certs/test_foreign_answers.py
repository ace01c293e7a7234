"""What answers in place of the API server, such as a proxy with a page of its own."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from kubernetes import client

from certs.cluster import Cluster
from certs.errors import ClusterError
from policies.contract import CA_SECRET, SERVING_SECRET
from tests.certs.simulated_api_server import SimulatedApiServer


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"",
        b"[]",
        b"\xff",
        b"{} in an unknown encoding",
        b'{"metadata": 1}',
        b'{"webhooks": [{"name": 1}]}',
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
    ],
)
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (200, r"the answer is not .*: is a proxy in between\?$"),
        (500, r"500 Internal Server Error: see the log of the API server$"),
    ],
)
def test_an_answer_that_is_none_of_an_api_server_is_one_line(content: bytes, status: int, said: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            encoding = "charset=foo" if content.endswith(b"encoding") else "charset=utf-8"
            self.send_header("Content-Type", f"application/json; {encoding}")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        Thread(target=proxy.serve_forever).start()
        with (
            client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{proxy.server_port}")) as api,
            pytest.raises(ClusterError, match=rf"^cannot get mutating.*: {said}"),
        ):
            Cluster(api, namespace="gpu-share").read()
        proxy.shutdown()


@pytest.mark.parametrize("name", [CA_SECRET, SERVING_SECRET])
@pytest.mark.parametrize("data", ["!!!", "é", "YQ"])
def test_data_that_is_not_base64_is_one_line(
    server: SimulatedApiServer, cluster: Cluster, name: str, data: str
) -> None:
    server.put(name, {"data": {"tls.crt": data}})
    with pytest.raises(
        ClusterError, match=rf"^cannot get secrets {name}: the answer is not what an API server gives: "
    ):
        cluster.read()
