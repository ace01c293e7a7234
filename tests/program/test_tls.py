"""API servers are trusted as kubectl trusts them, by every version of Python."""

import base64
import functools
import json
import shutil
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from urllib3.util import create_urllib3_context

from console.api_server import UnseenError
from console.kubeconfig import NoClusterError, connect
from plugin.dra.api_server import ApiError, ApiServer, path_of_node
from plugin.simulated.api_server import SimulatedApiServer, Store
from tests.program.certificates import PlainCa
from tests.program.tunnel import tunnel

NODE = path_of_node("node-1")
Serving = Callable[..., int]


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make contexts strict by default, as Python and urllib3 do from 3.13 on."""
    flags = ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    *others, _ = create_urllib3_context.__defaults__ or ()
    monkeypatch.setattr(create_urllib3_context, "__defaults__", (*others, flags))
    made = ssl.create_default_context

    @functools.wraps(made)
    def create(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context = made(*arguments, **named)
        context.verify_flags |= flags
        return context

    monkeypatch.setattr(ssl, "create_default_context", create)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """Serve by the certificate `tls.crt` in the directory, want one of a CA if that is named, and give the port."""
    (tmp_path / "token").write_text("token")
    store = Store()
    store.put(NODE, {"metadata": {"name": "node-1"}})
    with ExitStack() as stack:

        def serve(wants: str = "") -> int:
            server = SimulatedApiServer(store, certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")
            server._server.handle_error = lambda *_: None  # type: ignore[method-assign] # callers that are denied
            if wants:
                tls: ssl.SSLContext = server._server.socket.context  # type: ignore[attr-defined] # over TLS
                tls.load_verify_locations(tmp_path / wants)
                tls.verify_mode = ssl.CERT_REQUIRED
            return stack.enter_context(server).port

        yield serve


def kubeconfig(directory: Path, port: int, *, user: object = None, **cluster: object) -> Path:
    trust = {} if "insecure-skip-tls-verify" in cluster else {"certificate-authority": "ca.crt"}
    content = {
        "clusters": [{"name": "c", "cluster": {"server": f"https://localhost:{port}"} | trust | cluster}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
        "current-context": "here",
    }
    file = directory / "kubeconfig"
    file.write_text(json.dumps(content))
    return file


def asked_by_view(directory: Path, port: int) -> object:
    return json.loads(connect(kubeconfig=kubeconfig(directory, port)).get(NODE))


def asked_by_plugin(directory: Path, port: int) -> object:
    return ApiServer("localhost", port, credentials=directory).get(NODE)


CLIENTS = [pytest.param(asked_by_view, id="view"), pytest.param(asked_by_plugin, id="plugin")]


@pytest.mark.parametrize("ask", CLIENTS)
def test_an_api_server_needs_no_key_identifiers_in_its_certificates(
    tmp_path: Path, serving: Serving, ask: Callable[[Path, int], dict[str, Any]]
) -> None:
    PlainCa.new(tmp_path).issue(tmp_path, "tls")
    assert ask(tmp_path, serving())["metadata"]["name"] == "node-1"


@pytest.mark.parametrize("ask", CLIENTS)
@pytest.mark.parametrize(
    ("issue", "said"),
    [
        (lambda ca, at: ca.issue(at, "tls", to="elsewhere.example"), "Hostname mismatch"),
        (lambda ca, at: ca.issue(at, "tls", days=-1), "certificate has expired"),
        (lambda _, at: PlainCa.new(at, "other").issue(at, "tls"), "certificate signature failure"),
        (lambda ca, at: ca.issue_by_common_name(at, "tls"), "Hostname mismatch"),
    ],
    ids=["name", "expiry", "chain", "common name"],
)
def test_name_expiry_and_chain_of_an_api_server_are_checked(
    tmp_path: Path,
    serving: Serving,
    issue: Callable[[PlainCa, Path], None],
    said: str,
    ask: Callable[[Path, int], object],
) -> None:
    issue(PlainCa.new(tmp_path), tmp_path)
    with pytest.raises((UnseenError, ApiError), match=said):
        ask(tmp_path, serving())


def test_the_plugin_says_what_the_certificate_of_an_api_server_must_be(tmp_path: Path, serving: Serving) -> None:
    PlainCa.new(tmp_path).issue(tmp_path, "tls", to="elsewhere.example")
    with pytest.raises(ApiError) as raised:
        asked_by_plugin(tmp_path, serving())
    said = f"is not valid for 'localhost': it must be for localhost, and by a CA in {tmp_path}/ca.crt"
    assert str(raised.value).endswith(said)
    assert "network" not in str(raised.value)


@pytest.mark.parametrize("trusted", ["middle", "tls"])
def test_a_ca_of_another_ca_and_the_servers_own_certificate_are_trusted_alone(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch, trusted: str
) -> None:
    monkeypatch.undo()  # before 3.13 neither is by default
    PlainCa.new(tmp_path, "root").ca(tmp_path, "middle").issue(tmp_path, "tls")
    shutil.copy(tmp_path / f"{trusted}.crt", tmp_path / "ca.crt")
    port = serving()
    assert asked_by_view(tmp_path, port)
    assert asked_by_plugin(tmp_path, port)


def test_a_ca_may_have_a_comment_in_any_language(tmp_path: Path, serving: Serving) -> None:
    PlainCa.new(tmp_path).issue(tmp_path, "tls")
    data = base64.b64encode("# Főtanúsítvány\n".encode() + (tmp_path / "ca.crt").read_bytes()).decode()
    trust = {"certificate-authority": None, "certificate-authority-data": data}
    assert connect(kubeconfig=kubeconfig(tmp_path, serving(), **trust)).get(NODE)


def test_another_name_is_expected_where_the_kubeconfig_says_so(tmp_path: Path, serving: Serving) -> None:
    PlainCa.new(tmp_path).issue(tmp_path, "tls", to="elsewhere.example")
    file = kubeconfig(tmp_path, serving(), **{"tls-server-name": "elsewhere.example"})
    assert connect(kubeconfig=file).get(NODE)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_api_server_behind_a_proxy_needs_no_key_identifiers_either(
    tmp_path: Path, serving: Serving, scheme: str
) -> None:
    ca = PlainCa.new(tmp_path)
    ca.issue(tmp_path, "tls")
    ca.issue(tmp_path, "proxy")
    pair = (tmp_path / "proxy.crt", tmp_path / "proxy.key") if scheme == "https" else None
    with tunnel(pair) as (port, asked):
        file = kubeconfig(tmp_path, to := serving(), **{"proxy-url": f"{scheme}://localhost:{port}"})
        assert connect(kubeconfig=file).get(NODE)
    assert asked == [f"localhost:{to}"]


def test_a_client_certificate_is_shown(tmp_path: Path, serving: Serving) -> None:
    ca = PlainCa.new(tmp_path)
    for name in ("tls", "client"):
        ca.issue(tmp_path, name)
    port = serving(wants="ca.crt")
    with pytest.raises(UnseenError):
        asked_by_view(tmp_path, port)
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    assert connect(kubeconfig=kubeconfig(tmp_path, port, user=user)).get(NODE)


def test_no_file_is_left_of_a_key_that_the_kubeconfig_holds(
    tmp_path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    ca = PlainCa.new(tmp_path)
    for name in ("tls", "client"):
        ca.issue(tmp_path, name)
    user = {"client-certificate-data": in_base64(tmp_path / "client.crt")}
    user |= {"client-key-data": in_base64(tmp_path / "client.key")}
    trust = {"certificate-authority": None, "certificate-authority-data": in_base64(tmp_path / "ca.crt")}
    api = connect(kubeconfig=kubeconfig(tmp_path, serving(wants="ca.crt"), user=user, **trust))
    assert not [*(tmp_path / "temporary").iterdir()]
    assert api.get(NODE)


def test_nor_is_one_where_the_api_server_has_no_tls_or_a_plugin_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    PlainCa.new(tmp_path).issue(tmp_path, "client")
    user: dict[str, object] = {"client-certificate-data": in_base64(tmp_path / "client.crt")}
    user["client-key-data"] = in_base64(tmp_path / "client.key")
    connect(kubeconfig=kubeconfig(tmp_path, 1, user=user, server="http://localhost:1"))
    assert not [*(tmp_path / "temporary").iterdir()]
    user["exec"] = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false", "interactiveMode": "Never"}
    with pytest.raises(NoClusterError, match="false failed"):
        connect(kubeconfig=kubeconfig(tmp_path, 1, user=user))
    assert not [*(tmp_path / "temporary").iterdir()]


def in_base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def test_an_api_server_that_is_not_to_be_verified_is_asked_without_a_warning(tmp_path: Path, serving: Serving) -> None:
    PlainCa.new(tmp_path).issue(tmp_path, "tls", to="elsewhere.example")
    file = kubeconfig(tmp_path, serving(), **{"insecure-skip-tls-verify": True})
    assert connect(kubeconfig=file).get(NODE)


def test_a_key_with_a_password_is_said_and_nobody_is_asked_for_it(tmp_path: Path, serving: Serving) -> None:
    ca = PlainCa.new(tmp_path)
    ca.issue(tmp_path, "tls")
    ca.issue(tmp_path, "client", password=b"secret")
    file = kubeconfig(tmp_path, serving(), user={"client-certificate": "client.crt", "client-key": "client.key"})
    with pytest.raises(UnseenError, match="private key is encrypted"):
        connect(kubeconfig=file).get(NODE)
