"""A kubeconfig leads where it leads kubectl."""

import json
import socket
import socketserver
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner

import certs.cluster
from console.kubeconfig import NoClusterError, connect
from gpu_share import main
from tests.console.conftest import Served
from tests.console.objects import cluster, gpu, state

CONNECTORS = [lambda: connect().address, lambda: certs.cluster.connect().configuration.host]
A = state(gpu(), on="gpu-a")
TOKEN = "secret-token"  # noqa: S105 - of nobody


def changed(file: Path, *, user: object = None, name: str = "", **cluster_fields: object) -> Path:
    """Write a kubeconfig of one cluster beside *file*, with other fields."""
    known = yaml.safe_load(file.read_text())
    known["users"][0]["user"] = known["users"][0]["user"] if user is None else user
    known["clusters"][0]["cluster"] |= cluster_fields
    copy = file.with_name(name or "changed")
    copy.write_text(json.dumps(known))
    return copy


def own(directory: Path, name: str, *, current: str | None) -> Path:
    """Write a kubeconfig of a cluster with that name."""
    content: dict[str, Any] = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "users": [{"name": name, "user": {"token": name}}],
    }
    file = directory / name
    file.write_text(json.dumps(content | ({} if current is None else {"current-context": current})))
    return file


@pytest.mark.parametrize("connector", CONNECTORS, ids=["console", "certs"])
@pytest.mark.parametrize(
    ("current", "leads_to"),
    [(("a", "b"), "a"), (("b", "a"), "b"), ((None, "b"), "b"), (("", "b"), "b"), (("a", ""), "a"), (("a", None), "a")],
)
def test_of_several_files_the_first_says_which_context_is_current(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connector: Callable[[], str],
    current: tuple[str | None, str | None],
    leads_to: str,
) -> None:
    files = [own(tmp_path, name, current=one) for name, one in zip(("a", "b"), current, strict=True)]
    monkeypatch.setenv("KUBECONFIG", ":".join(str(one) for one in files))
    assert connector() == f"https://{leads_to}.example"


def test_files_that_are_empty_or_not_there_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").write_text("# later\n")
    own(tmp_path, "a", current="a")
    monkeypatch.setenv("KUBECONFIG", ":".join(str(tmp_path / name) for name in ("missing", "empty", "a", "empty")))
    api = connect()
    assert (api.context, api.namespace) == ("a", "of-a")


def test_an_empty_variable_leads_to_the_file_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".kube").mkdir()
    own(tmp_path, "a", current="a").rename(tmp_path / ".kube/config")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    assert connect().context == "a"


@pytest.mark.parametrize("written", ["token", "file"])
def test_a_token_ends_with_its_line(served: Served, tmp_path: Path, written: str) -> None:
    known = cluster(A)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    user = {"token": f"{TOKEN}\n"} if written == "token" else {"tokenFile": "token"}
    ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(changed(served(known), user=user))])
    assert ran.exit_code == 0, ran.output
    assert {one["Authorization"] for one in known.headers} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("command", ["top", "doctor", "explain resnet"])
@pytest.mark.parametrize("token", [f"{TOKEN}\nb", f"{TOKEN}\u20ac"])
def test_a_token_that_no_header_can_have_is_said_without_it(served: Served, command: str, token: str) -> None:
    file = changed(served(cluster(A)), user={"token": token})
    ran = CliRunner().invoke(main, [*command.split(), "--kubeconfig", str(file)])
    assert isinstance(ran.exception, SystemExit)
    assert "the token has a character that HTTP does not allow: correct the kubeconfig" in ran.output
    assert TOKEN not in ran.output


def test_requests_are_made_as_the_user_that_the_kubeconfig_names(served: Served) -> None:
    user = {"as": "ann", "as-uid": "7", "as-groups": ["one", "two"], "as-user-extra": {"a/b": ["x", "y"]}, "token": "t"}
    known = cluster(A)
    assert connect(kubeconfig=changed(served(known), user=user)).get("/version")
    (headers,) = known.headers
    names = ("Impersonate-User", "Impersonate-Uid", "Impersonate-Group", "Impersonate-Extra-a%2Fb", "Authorization")
    assert [headers.get_all(name) for name in names] == [["ann"], ["7"], ["one", "two"], ["x", "y"], ["Bearer t"]]


def test_a_user_that_no_header_can_have_is_said(served: Served) -> None:
    with pytest.raises(NoClusterError, match="the user in as has a character that HTTP does not allow"):
        connect(kubeconfig=changed(served(cluster(A)), user={"as": "a\nb"}))


def test_groups_of_nobody_are_no_user(served: Served) -> None:
    with pytest.raises(NoClusterError, match="a user has as-uid, as-groups or as-user-extra, but no as"):
        connect(kubeconfig=changed(served(cluster(A)), user={"as-groups": ["system:masters"]}))


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
            with socket.create_connection(("127.0.0.1", port)) as server:
                self.wfile.write(b"\x05\x00\x00\x01" + bytes(6))
                answers = Thread(target=_copied, args=[server, self.connection])
                answers.start()
                _copied(self.connection, server)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _copied(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
