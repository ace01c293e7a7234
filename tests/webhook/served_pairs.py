"""Pairs of a serving certificate and its key, and what a webhook shows and says of the one that it serves."""

import ssl
from datetime import UTC, datetime, timedelta

from certs.issuer import CA
from tests.webhook.serving import Server


def files_of(authority: CA, *, days_ago: float = 0) -> dict[str, bytes]:
    """A serving certificate of now or of some days ago, as the files of a Secret."""
    pair = authority.issue(("localhost",), now=datetime.now(UTC) - timedelta(days=days_ago))
    return {"ca.crt": authority.pair.certificate_pem, "tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}


def served(server: Server, by: ssl.SSLContext | None = None) -> bytes:
    """The certificate that the next handshake shows to a caller who trusts it, PEM."""
    with server.tls(by) as connection:
        shown = connection.getpeercert(binary_form=True)
        assert shown is not None
        return ssl.DER_cert_to_PEM_cert(shown).encode()


def ready(server: Server) -> str:
    with server.caller() as caller:
        status, text = caller.ask("GET", "/readyz")
        assert status == 200
        return text
