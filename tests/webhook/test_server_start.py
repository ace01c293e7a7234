"""What stops the start of the webhook, with one line, and what it says when it serves."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs.issuer import issue_to_directory
from tests.webhook.serving import Server


def test_the_configuration_in_force_is_logged_at_the_start(server: Server, policies: Path, certificates: Path) -> None:
    (line,) = server.lines("serving")
    assert line["address"] == f"https://127.0.0.1:{server.port}"
    assert line["policies"] == str(policies)
    assert line["certificate"] == str(certificates / "tls.crt")
    assert (line["workers"], line["body_bytes"], line["idle_seconds"]) == (1, 8 * 1024 * 1024, 120)
    assert line["connections"] == 1024


def run(**options: object) -> subprocess.CompletedProcess[str]:
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    webhook = [sys.executable, "-m", "gpu_share", "webhook", *given]
    return subprocess.run(webhook, capture_output=True, text=True, timeout=20, check=False)


def encrypted_key(directory: Path) -> None:
    key = serialization.load_pem_private_key((directory / "tls.key").read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"password")
    (directory / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )


def weak_pair(directory: Path) -> None:
    key = rsa.generate_private_key(65537, 1024)  # noqa: S505 - the fault
    name, now = x509.Name([]), datetime.now(UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    (directory / "tls.crt").write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (directory / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize(
    ("spoil", "names"),
    [
        pytest.param(lambda at: (at / "tls.crt").unlink(), ["--cert", "tls.crt", "no such file"], id="no cert"),
        pytest.param(lambda at: (at / "tls.key").unlink(), ["--key", "tls.key", "no such file"], id="no key"),
        pytest.param(lambda at: (at / "tls.crt").write_text("x"), ["--cert", "tls.crt", "PEM"], id="bad cert"),
        pytest.param(lambda at: (at / "tls.key").write_text("x"), ["--key", "tls.key", "PEM"], id="bad key"),
        pytest.param(lambda at: (at / "tls.key").write_bytes(b"\xff\0"), ["--key", "PEM"], id="binary key"),
        pytest.param(lambda at: (at / "tls.crt").write_bytes(b"\xff\0"), ["--cert", "PEM"], id="binary cert"),
        pytest.param(lambda at: replaced(at / "tls.key", os.mkfifo), ["--key", "tls.key", "a named pipe"], id="a pipe"),
        pytest.param(
            lambda at: replaced(at / "tls.crt", lambda path: path.symlink_to("/dev/zero")),
            ["--cert", "tls.crt", "a device"],
            id="a device",
        ),
        pytest.param(lambda at: os.truncate(at / "tls.crt", 1 << 40), ["--cert", "tls.crt", "1024 KiB"], id="endless"),
        pytest.param(weak_pair, ["--cert", "tls.crt", "too weak for OpenSSL (EE_KEY_TOO_SMALL)"], id="weak"),
        pytest.param(encrypted_key, ["--key", "tls.key", "password"], id="encrypted key"),
        pytest.param(
            lambda at: (at / "tls.crt").write_bytes((at / "ca.crt").read_bytes()),
            ["--key", "tls.key", "not the key of", "tls.crt"],
            id="another's key",
        ),
    ],
)
def test_a_pair_that_cannot_be_served_stops_the_start_with_one_line(
    tmp_path: Path, policies: Path, spoil: Callable[[Path], object], names: list[str]
) -> None:
    issue_to_directory(tmp_path, dns_names=("localhost",))
    spoil(tmp_path)
    ended = run(policies=policies, cert=tmp_path / "tls.crt", key=tmp_path / "tls.key", bind="127.0.0.1:0")
    assert ended.returncode == 2
    assert_one_line(ended.stderr, names)


def assert_one_line(stderr: str, names: list[str]) -> None:
    assert stderr.startswith("gpu-share webhook: ")
    assert stderr.count("\n") == 1
    assert [name for name in names if name not in stderr] == []


@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param(None, ["--policies: ", "missing", "No such file"], id="no directory"),
        pytest.param(
            {"_default.yaml": "share: {maximum: 7.5.1}"},
            ["--policies: ", "missing/_default.yaml:1: share", "7.5.1"],
            id="broken",
        ),
    ],
)
def test_policies_that_cannot_be_used_stop_the_start_with_one_line(
    tmp_path: Path, certificates: Path, files: dict[str, str] | None, names: list[str]
) -> None:
    directory = tmp_path / "missing"
    for name, text in (files or {}).items():
        directory.mkdir()
        (directory / name).write_text(text)
    ended = run(policies=directory, cert=certificates / "tls.crt", key=certificates / "tls.key", bind="127.0.0.1:0")
    assert ended.returncode == 2
    assert_one_line(ended.stderr, names)


@pytest.mark.parametrize(
    "bind", ["8443", "localhost:", ":8443", "localhost:x", "localhost:70000", "localhost:²", f"x:{'9' * 5000}"]
)
def test_an_address_that_is_none_is_bad_usage(policies: Path, certificates: Path, bind: str) -> None:
    ended = run(policies=policies, cert=certificates / "tls.crt", key=certificates / "tls.key", bind=bind)
    assert ended.returncode == 2
    assert_one_line(ended.stderr, ["--bind must be HOST:PORT", f'"{bind}"'])


@pytest.mark.parametrize(
    ("bind", "reason"),
    [("", "in use"), ("192.0.2.1:0", "assign"), ("no.invalid:0", "not known"), ("ß..:0", "not known")],
)
def test_an_address_that_cannot_be_had_is_a_failure(
    server: Server, policies: Path, certificates: Path, bind: str, reason: str
) -> None:
    bind = bind or f"127.0.0.1:{server.port}"
    ended = run(policies=policies, cert=certificates / "tls.crt", key=certificates / "tls.key", bind=bind)
    assert ended.returncode == 1
    assert_one_line(ended.stderr, [f"--bind {bind}", reason])


def test_what_gunicorn_would_take_from_the_environment_changes_nothing(
    start: Callable[..., Server], policies: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("FORWARDED_ALLOW_IPS", "GUNICORN_FD", "GUNICORN_PID", "LISTEN_FDS", "LISTEN_PID", "PORT", "SENDFILE")
    for name in (*names, "GUNICORN_CMD_ARGS", "WEB_CONCURRENCY"):
        monkeypatch.setenv(name, "abc")
    started = start(policies, certificates)
    (line,) = started.lines("serving")
    assert (line["address"], line["workers"]) == (f"https://127.0.0.1:{started.port}", 1)
    assert [line for line in started.lines() if line["level"] != "info"] == []


def test_a_working_directory_that_is_gone_stops_the_start_with_one_line(
    tmp_path: Path, policies: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ended = run(policies=policies, cert=certificates / "tls.crt", key=certificates / "tls.key", bind="127.0.0.1:0")
    assert ended.returncode == 2
    assert_one_line(ended.stderr, ["the working directory is gone", "start it in another one"])
