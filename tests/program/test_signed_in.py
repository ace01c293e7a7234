"""A certificate that is had anew, or renewed in its files, is shown on the next connections."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from time import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kubernetes import client

from program.api_client import api_client
from program.login import Credential, Login
from tests.serving import serving


def certificate(directory: Path, name: str) -> Path:
    """Write a certificate that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(named, named, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    text = made.public_bytes(pem) + key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = directory / name
    path.write_bytes(text)
    return path


class _Handler(BaseHTTPRequestHandler):
    """Says whose certificate was shown on the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.connection, ssl.SSLSocket)
        shown = self.connection.getpeercert() or {}
        content = str(shown.get("subject")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def knowing(own: Path, *known: Path) -> Iterator[str]:
    """Serve over TLS, and want a certificate of those that are known; yield the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    context.verify_mode = ssl.CERT_REQUIRED
    for one in known:
        context.load_verify_locations(one)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as port:
        yield f"https://127.0.0.1:{port}"


@pytest.mark.parametrize("has_static_key", [True, False])
def test_each_connection_shows_the_certificate_that_is_valid_then(tmp_path: Path, *, has_static_key: bool) -> None:
    own, ann, bob = (certificate(tmp_path, name) for name in ("own", "ann", "bob"))
    now, shown = [1000.0], iter((ann, bob, bob))
    login = Login(lambda: Credential(certificate=next(shown).read_bytes(), due=now[0] + 60), clock=lambda: now[0])
    with knowing(own, ann, bob) as address:
        settings = client.Configuration(host=address)
        settings.ssl_ca_cert = str(own)
        if has_static_key:
            settings.cert_file = settings.key_file = str(own)
        with api_client(settings, login) as api:
            seen = []
            for _ in range(4):
                answer = api.call_api("GET", f"{address}/", {})
                said = answer.response.read().decode()
                seen.append(next(name for name in ("ann", "bob") if name in said))
                answer.response.release_conn()
                now[0] += 30
    assert seen == ["ann", "ann", "bob", "bob"]


def test_files_of_a_client_certificate_are_read_again_and_half_of_a_renewal_is_not_shown(tmp_path: Path) -> None:
    own, ann, bob = (certificate(tmp_path, name) for name in ("own", "ann", "bob"))
    crt, key = tmp_path / "client.crt", tmp_path / "client.key"
    with knowing(own, ann, bob) as address:
        settings = client.Configuration(host=address)
        settings.ssl_ca_cert, settings.cert_file, settings.key_file = str(own), str(crt), str(key)
        for file in (crt, key):
            file.write_bytes(ann.read_bytes())
        with api_client(settings, Login(Credential)) as api:
            assert "ann" in _shown(api, address)
            crt.write_bytes(bob.read_bytes())
            _later(api, seconds=6)
            assert "ann" in _shown(api, address)
            key.write_bytes(bob.read_bytes())
            _later(api, seconds=60)
            assert "bob" in _shown(api, address)


def _shown(api: client.ApiClient, address: str) -> str:
    answer = api.call_api("GET", f"{address}/", {})
    said = answer.response.read().decode()
    answer.response.release_conn()
    return str(said)


def _later(api: client.ApiClient, *, seconds: float) -> None:
    """Have time pass for the files."""
    files = api.rest_client.pool_manager._files  # type: ignore[attr-defined] # of SignedIn
    files._clock = lambda: time() + seconds
