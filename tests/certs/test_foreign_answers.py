"""What answers in place of the API server, such as a proxy with a page of its own."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from kubernetes import client

from certs.cluster import Cluster
from certs.errors import ClusterError
from policies.contract import CA_SECRET, SERVING_SECRET
from tests.certs.pass_over_http import PERMISSIONS, emptied, run
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.serving import serving


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"",
        b"[]",
        b"null",
        b"\xff",
        b"{} in an unknown encoding",
        b'{"metadata": 1}',
        b'{"webhooks": [{"name": 1}]}',
        b'{"webhooks": 1}',
        b'{"metadata": {"resourceVersion": "1", "ownerReferences": true}}',
        b'{"metadata": {"resourceVersion": "1", "managedFields": 1.5}}',
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

    with (
        serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port,
        client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{port}")) as api,
        pytest.raises(ClusterError, match=rf"^cannot get mutating.*: {said}"),
    ):
        Cluster(api, namespace="gpu-share").read()


@pytest.mark.parametrize("answer", [(200, {}), (204, None), (201, {"kind": "Pod", "metadata": {"name": "a"}})])
@pytest.mark.parametrize("call", sorted(PERMISSIONS))
def test_an_answer_without_the_object_is_one_line_for_every_call(
    server: SimulatedApiServer,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    answer: tuple[int, Any],
) -> None:
    if call.startswith("patch"):
        emptied(server)
    handle = server.handle

    def without_the_object(*request: Any) -> tuple[int, Any]:
        real = handle(*request)
        return answer if call == str(server.calls[-1][0]) and real[0] < 300 else real

    monkeypatch.setattr(server, "handle", without_the_object)
    with pytest.raises(ClusterError, match=rf"^cannot {call}.*: the answer is not .*: is a proxy in between\?$"):
        run(cluster)


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
