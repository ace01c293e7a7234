"""API servers are trusted while their CA is rotated, and the CA bundle has two of one name for weeks."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.api_server import ApiServer as View
from console.api_server import UnseenError
from console.kubeconfig import connect
from plugin.dra.api_server import ApiError, ApiServer
from plugin.simulated.api_server import SimulatedApiServer, Store
from tests.program.certificates import PlainCa

NODE = "/api/v1/nodes/node-1"
Ask = Callable[[Path, int], object]


@contextmanager
def serving(directory: Path, name: str, *, wants: str = "") -> Iterator[tuple[int, ssl.SSLContext]]:
    """Serve by the certificate of that name, and want one of a CA if that is named; yield the port, and the TLS."""
    store = Store()
    store.put(NODE, {"metadata": {"name": "node-1"}})
    server = SimulatedApiServer(store, certificate=directory / f"{name}.crt", key=directory / f"{name}.key")
    server._server.handle_error = lambda *_: None  # type: ignore[method-assign] # callers that do not trust it
    tls: ssl.SSLContext = server._server.socket.context  # type: ignore[attr-defined] # over TLS
    if wants:
        tls.load_verify_locations(directory / f"{wants}-ca.crt")
        tls.verify_mode = ssl.CERT_REQUIRED
    with server:
        yield server.port, tls


def view(directory: Path, port: int) -> View:
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    cluster = {"server": f"https://localhost:{port}", "certificate-authority": "bundle.crt"}
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user if (directory / "client.crt").exists() else {"token": "t"}}],
        "current-context": "here",
    }
    (directory / "kubeconfig").write_text(json.dumps(content))
    return connect(kubeconfig=directory / "kubeconfig")


def asked_by_view(directory: Path, port: int) -> object:
    return view(directory, port).get(NODE)


def asked_by_plugin(directory: Path, port: int) -> object:
    (directory / "token").write_text("token")
    (directory / "ca.crt").write_bytes((directory / "bundle.crt").read_bytes())
    return ApiServer("localhost", port, credentials=directory).get(NODE)


CLIENTS = [pytest.param(asked_by_view, id="view"), pytest.param(asked_by_plugin, id="plugin")]


def bundle(directory: Path, *names: str) -> None:
    text = b"".join((directory / f"{name}-ca.crt").read_bytes() for name in names)
    (directory / "bundle.crt").write_bytes(text)


def cas(directory: Path, *names: str) -> dict[str, PlainCa]:
    """Make CAs of one name, without key identifiers, of which each has issued a certificate."""
    made = {name: PlainCa.new(directory, f"{name}-ca") for name in names}
    for name, ca in made.items():
        ca.issue(directory, name)
    return made


@pytest.mark.parametrize("ask", CLIENTS)
@pytest.mark.parametrize("issuer", ["old", "new"])
@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")], ids=" before ".join)
def test_servers_of_the_old_ca_and_of_the_new_one_are_trusted(
    tmp_path: Path, order: tuple[str, str], issuer: str, ask: Ask
) -> None:
    cas(tmp_path, "old", "new")
    bundle(tmp_path, *order)
    with serving(tmp_path, issuer) as (port, _):
        assert ask(tmp_path, port)


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_third_ca_of_the_name_of_two_is_not_trusted(tmp_path: Path, ask: Ask) -> None:
    cas(tmp_path, "old", "new", "third")
    bundle(tmp_path, "old", "new")
    with (
        serving(tmp_path, "third") as (port, _),
        pytest.raises((UnseenError, ApiError), match="certificate signature failure"),
    ):
        ask(tmp_path, port)


@pytest.mark.parametrize("issuer", ["old", "new"])
def test_a_client_certificate_is_shown_to_servers_of_either(tmp_path: Path, issuer: str) -> None:
    cas(tmp_path, "old", "new")["new"].issue(tmp_path, "client")
    bundle(tmp_path, "old", "new")
    with serving(tmp_path, issuer, wants="new") as (port, _):
        assert asked_by_view(tmp_path, port)


def test_one_client_goes_from_a_server_of_one_to_a_server_of_the_other_and_back(tmp_path: Path) -> None:
    cas(tmp_path, "old", "new")
    bundle(tmp_path, "old", "new")
    with serving(tmp_path, "old") as (port, tls):
        api = view(tmp_path, port)
        for issuer in ("old", "new", "new", "old", "new"):
            tls.load_cert_chain(tmp_path / f"{issuer}.crt", tmp_path / f"{issuer}.key")
            api._client.rest_client.pool_manager.clear()
            assert api.get(NODE)
