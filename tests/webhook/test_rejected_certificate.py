"""Two pairs, of which the clock of the webhook's node prefers one, and callers whose own clocks or bundles may not."""

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.issuer import CA, new_ca
from tests.webhook.served_pairs import files_of, served
from tests.webhook.serving import NO_CHECK_TIME, Server, wait_for
from tests.webhook.volume import Volume

AHEAD = 2 / 24  # days of the API server's clock before ours


def trusting(authority: CA, *, checks_time: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pair.certificate_pem.decode())
    if not checks_time:
        context.verify_flags |= NO_CHECK_TIME
    return context


def shown(server: Server, by: ssl.SSLContext) -> bytes:
    """The certificate that a caller is shown and trusts, PEM; empty if it does not."""
    try:
        return served(server, by)
    except ssl.SSLCertVerificationError:
        return b""


@pytest.fixture
def authorities() -> tuple[CA, CA]:
    return new_ca(now=datetime.now(UTC)), new_ca(now=datetime.now(UTC))


def renewed(directory: Path, policies: Path, start: Callable[..., Server], *pairs: dict[str, bytes]) -> Server:
    """A server that began with the first of two *pairs*, and was given the second."""
    old, newest = pairs
    volume = Volume(directory / "secret", old)
    server = start(policies, volume.directory)
    volume.swap(newest)
    return server


def test_callers_that_no_longer_trust_the_old_pair_get_the_one_that_is_not_valid_yet_by_our_clock(
    tmp_path: Path, policies: Path, authorities: tuple[CA, CA], start: Callable[..., Server]
) -> None:
    before, after = authorities
    newest = files_of(after, days_ago=-AHEAD)
    server = renewed(tmp_path, policies, start, files_of(before), newest)
    api_server = trusting(after, checks_time=False)  # its clock is two hours ahead of ours
    assert shown(server, api_server) == b""
    for _ in range(3):
        assert shown(server, api_server) == newest["tls.crt"]
    with server.tls(api_server) as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"the certificate that is served is not valid before " in connection.recv(4096)
    wait_for(lambda: server.lines("certificate rejected, the other one in force"))
    (told,) = server.lines("certificate rejected, the other one in force")
    assert told["reason"] == "TLSV1_ALERT_UNKNOWN_CA"


def test_callers_that_reject_both_pairs_keep_nobody_from_the_valid_one_for_long(
    tmp_path: Path, policies: Path, authorities: tuple[CA, CA], start: Callable[..., Server]
) -> None:
    authority, stranger = authorities
    old = files_of(authority)
    server = renewed(tmp_path, policies, start, old, files_of(authority, days_ago=-AHEAD))
    api_server = trusting(authority, checks_time=True)
    for rejections in range(1, 4):
        for _ in range(rejections):
            assert shown(server, trusting(stranger, checks_time=True)) == b""
        assert old["tls.crt"] in [shown(server, api_server), shown(server, api_server)]
        assert shown(server, api_server) == old["tls.crt"]


def test_where_no_other_pair_waits_a_rejection_changes_nothing(
    tmp_path: Path, policies: Path, authorities: tuple[CA, CA], start: Callable[..., Server]
) -> None:
    authority, stranger = authorities
    newest = files_of(authority)
    server = renewed(tmp_path, policies, start, files_of(authority), newest)
    for _ in range(3):
        assert shown(server, trusting(stranger, checks_time=True)) == b""
        assert shown(server, trusting(authority, checks_time=True)) == newest["tls.crt"]
    assert not server.lines("certificate rejected, the other one in force")
