"""The API server is asked by the proxy by which kubectl asks it."""

import socketserver
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from console.kubeconfig import NoClusterError, connect
from console.look import look
from tests.console.conftest import Served
from tests.console.kubeconfigs import changed
from tests.console.objects import cluster, gpu, state
from tests.program.tunnel import lead
from tests.serving import serving

A, B = state(gpu(), on="gpu-a"), state(gpu(), on="gpu-b")


def test_a_proxy_needs_no_scheme(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    file = served(cluster(B))
    proxy = urlsplit(connect(kubeconfig=file).address)  # it answers itself, which a proxy may
    monkeypatch.setenv("HTTP_PROXY", proxy.netloc)
    monkeypatch.setenv("NO_PROXY", ".elsewhere.example")
    api = connect(kubeconfig=changed(file, server="http://elsewhere.example"))
    assert [one.state for one in look(api).nodes] == [B]


@pytest.mark.parametrize("said_by", ["kubeconfig", "environment"])
def test_a_proxy_is_shown_its_user(served: Served, monkeypatch: pytest.MonkeyPatch, said_by: str) -> None:
    known = cluster(A)
    file = served(known)
    proxy = f"http://ann:p%40ss@{urlsplit(connect(kubeconfig=file).address).netloc}"
    if said_by == "environment":
        monkeypatch.setenv("HTTP_PROXY", proxy)
    fields = {"proxy-url": proxy} if said_by == "kubeconfig" else {}
    assert connect(kubeconfig=changed(file, **{"server": "http://elsewhere.example"} | fields)).get("/version")
    assert known.headers[0]["Proxy-Authorization"] == f"Basic {b64encode(b'ann:p@ss').decode()}"


@pytest.mark.parametrize(
    "proxy", ["http://[", "://x", "ftp://x:1", "socks5://a..b:1", f"http://{'.'.join(['a' * 60] * 5)}:1"]
)
def test_an_invalid_proxy_is_one_sentence_without_its_password(
    served: Served, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    kubeconfig = served(cluster(A))
    kubeconfig.write_text(kubeconfig.read_text().replace("127.0.0.1", "elsewhere.example"))
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(NoClusterError, match=r"the proxy is invalid: expected an address such as http://proxy"):
        connect(kubeconfig=kubeconfig)


def test_a_proxy_of_the_kubeconfig_is_asked_whatever_the_environment_says(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cluster(A)
    file = served(known)
    proxy = connect(kubeconfig=file).address
    monkeypatch.setenv("NO_PROXY", "elsewhere.example")
    through = changed(file, **{"server": "http://elsewhere.example", "proxy-url": proxy})
    assert connect(kubeconfig=through).get("/version")
    assert known.asked == ["/version"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_proxy_of_the_environment_is_asked_for_this_machine(
    served: Served, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    known = cluster(A)
    file = served(known)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    port = urlsplit(connect(kubeconfig=file).address).port
    assert connect(kubeconfig=changed(file, server=f"http://{host}:{port}")).get("/version")
    assert known.asked == ["/version"]


def test_a_proxy_by_socks_looks_up_the_name_of_the_api_server(served: Served) -> None:
    known = cluster(A)
    file = served(known)
    port = urlsplit(connect(kubeconfig=file).address).port
    with socks(asked := list[bytes]()) as proxy:
        through = changed(file, **{"server": f"http://elsewhere.example:{port}", "proxy-url": f"socks5://{proxy}"})
        assert connect(kubeconfig=through).get("/version")
    assert asked == [b"elsewhere.example"]


@contextmanager
def socks(asked: list[bytes]) -> Iterator[str]:
    """Serve as a proxy by SOCKS 5 (RFC 1928) that knows every name, as one of this machine."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            _, methods = self.rfile.read(2)
            self.rfile.read(methods)
            self.wfile.write(b"\x05\x00")
            *_, kind, length = self.rfile.read(5)
            assert kind == 3  # a name
            asked.append(self.rfile.read(length))
            (port,) = struct.unpack("!H", self.rfile.read(2))
            lead(self.connection, port, said_first=b"\x05\x00\x00\x01" + bytes(6))

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"127.0.0.1:{port}"
