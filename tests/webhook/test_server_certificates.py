import json
import os
import re
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from certs.issuer import CA, new_ca
from tests.webhook.load import Load
from tests.webhook.served_pairs import files_of, ready, served
from tests.webhook.serving import Server, review_of, wait_for
from tests.webhook.volume import Volume

Start = Callable[..., Server]


@pytest.fixture
def authority() -> CA:
    return new_ca(now=datetime.now(UTC))


def write(directory: Path, files: dict[str, bytes]) -> None:
    """Replace one file after the other, each in one step."""
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / ".new").write_bytes(content)
        (directory / ".new").replace(directory / name)


def test_the_next_handshake_shows_a_new_certificate(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    volume = Volume(tmp_path / "secret", files_of(authority))
    server = start(policies, volume.directory)
    for _ in range(20):
        files = files_of(authority)
        volume.swap(files)
        assert served(server) == files["tls.crt"]


def test_certificates_rotate_under_load_and_no_call_fails(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    directory = tmp_path / "certificates"
    write(directory, files_of(authority))
    server = start(policies, directory, workers=2)

    def call() -> None:
        with server.caller() as caller:
            assert caller.allowed(review_of())

    with server.caller() as kept, Load(call) as load:
        for rotation in range(10):
            files = files_of(authority)
            # Certificate first and key first, so that both kinds of mismatch are met.
            write(directory, dict(sorted(files.items(), reverse=rotation % 2 == 0)))
            wait_for(partial(load.has_made, len(load.seconds) + 10))
            assert served(server) == files["tls.crt"]
            assert kept.allowed(review_of())
    assert load.failures == []


def test_half_of_a_pair_is_ignored_while_the_old_one_is_served(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    old, new = files_of(authority), files_of(authority)
    directory = tmp_path / "certificates"
    write(directory, old)
    server = start(policies, directory)
    for half_written in (
        {"tls.crt": new["tls.crt"]},
        {"tls.crt": new["tls.crt"][:200], "tls.key": new["tls.key"]},
        {"tls.crt": b""},
        {"tls.crt": new["tls.crt"], "tls.key": new["tls.key"][:100]},
    ):
        write(directory, half_written)
        assert served(server) == old["tls.crt"]
        assert "older one is served: --" in ready(server)
    (directory / "tls.crt").unlink()
    assert served(server) == old["tls.crt"]
    write(directory, new)
    assert served(server) == new["tls.crt"]
    assert ready(server) == "ready\n"
    assert {line["level"] for line in server.all_lines("new certificate ignored")} == {"warning"}
    assert len(server.all_lines("new certificate in force")) == 1


def test_an_expired_certificate_is_told_over_a_connection_that_was_made_before(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    volume = Volume(tmp_path / "secret", files_of(authority))
    server = start(policies, volume.directory)

    def says(text: str) -> bool:
        return str(kept.ask("GET", "/readyz")[1]).startswith(text)

    with server.caller() as kept:
        assert kept.ask("GET", "/readyz") == (200, "ready\n")
        volume.swap(files_of(authority, days_ago=30 - 6 / 86400))  # valid for six seconds more
        wait_for(lambda: says("ready\nthe certificate that is served expired at "), seconds=20)
        assert kept.allowed(review_of())
        volume.swap(files_of(authority))
        wait_for(lambda: kept.ask("GET", "/readyz") == (200, "ready\n"))


def test_a_pair_that_is_not_valid_yet_is_served_when_it_becomes_valid(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    old, early = files_of(authority), files_of(authority, days_ago=-(300 + 8) / 86400)  # valid in eight seconds
    volume = Volume(tmp_path / "secret", old)
    server = start(policies, volume.directory)
    volume.swap(early)
    assert served(server) == old["tls.crt"]
    assert re.search(
        "older one is served: --cert .*: it is not valid before .* UTC by the clock of this node: wait", ready(server)
    )
    wait_for(lambda: served(server) == early["tls.crt"], seconds=20)
    assert ready(server) == "ready\n"
    assert len(server.all_lines("new certificate ignored")) == 1
    assert len(server.all_lines("new certificate in force")) == 1


def test_a_pair_that_is_not_valid_yet_is_served_and_told_when_no_other_is_valid(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    volume = Volume(tmp_path / "secret", files_of(authority))
    server = start(policies, volume.directory)
    ending = files_of(authority, days_ago=30 - 8 / 86400)  # valid for eight seconds more
    with server.caller() as kept:
        volume.swap(ending)
        assert served(server) == ending["tls.crt"]
        volume.swap(files_of(authority, days_ago=-1))
        assert served(server) == ending["tls.crt"]
        told = "ready\nthe certificate that is served is not valid before "
        wait_for(lambda: kept.ask("GET", "/readyz")[1].startswith(told), seconds=20)
        assert kept.allowed(review_of())
        volume.swap(files_of(authority))
        wait_for(lambda: kept.ask("GET", "/readyz") == (200, "ready\n"))


def test_a_start_with_a_pair_that_is_not_valid_yet_serves_and_tells_it(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    volume = Volume(tmp_path / "secret", files_of(authority, days_ago=-1))
    server = start(policies, volume.directory, checks_time=False)
    assert ready(server).startswith("ready\nthe certificate that is served is not valid before ")
    volume.swap(files_of(authority))
    wait_for(lambda: ready(server) == "ready\n")


def test_a_worker_that_replaces_a_killed_one_begins_with_the_newest_good_pair(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    volume = Volume(tmp_path / "secret", files_of(authority))
    server = start(policies, volume.directory)
    newest = files_of(authority)
    volume.swap(newest)
    wait_for(lambda: server.lines("new certificate in force"), seconds=3)
    time.sleep(1.5)  # the process that starts workers looks once a second
    volume.swap(newest | {"tls.key": b"nothing"})
    os.kill(server.workers[0], signal.SIGKILL)
    assert served(server) == newest["tls.crt"]


def test_a_broken_pair_is_reported_without_a_caller(
    tmp_path: Path, policies: Path, authority: CA, start: Start
) -> None:
    directory = tmp_path / "certificates"
    write(directory, files_of(authority))
    server = start(policies, directory)
    (directory / "tls.key").write_text("nothing")
    wait_for(lambda: server.lines("new certificate ignored"), seconds=3)
    assert json.dumps(str(directory / "tls.key"))[1:-1] in server.lines("new certificate ignored")[0]["error"]
