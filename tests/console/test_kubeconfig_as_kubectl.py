"""A kubeconfig is taken as kubectl takes it: who is trusted, to whom a user is shown, which files are read."""

import json
import os
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

import certs.connection
import certs.errors
from console.kubeconfig import NoClusterError, connect
from gpu_share import main
from tests.console.conftest import Served
from tests.console.kubeconfigs import changed
from tests.console.objects import cluster, gpu, state
from tests.console.test_signing_in import _later

A = state(gpu(), on="gpu-a")
SECRET = "s3cret"  # noqa: S105 - of nobody
CA = b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()


@pytest.mark.parametrize("data", ["****", "@@@", "<ca>", f"{CA} ", CA.rstrip("="), "é"])
def test_a_ca_that_is_not_base64_is_not_taken_for_all_public_ones(served: Served, data: str) -> None:
    file = changed(served(cluster(A)), **{"server": "https://api.lan", "certificate-authority-data": data})
    with pytest.raises(NoClusterError, match="no cluster: certificate-authority-data must be base64: correct the"):
        connect(kubeconfig=file)


@pytest.mark.parametrize("data", ["REDACTED", "DATA+OMITTED", "Cg==", "\n", "////", b64encode(b"none").decode()])
def test_nor_is_one_without_a_certificate(served: Served, data: str) -> None:
    file = changed(served(cluster(A)), **{"server": "https://api.lan", "certificate-authority-data": data})
    with pytest.raises(NoClusterError, match="no cluster: certificate-authority-data must have a certificate in PEM"):
        connect(kubeconfig=file)


def test_a_ca_may_be_broken_into_lines(served: Served) -> None:
    data = "\r\n".join((CA[:20], CA[20:]))
    assert connect(kubeconfig=changed(served(cluster(A)), **{"certificate-authority-data": data})).get("/version")


@pytest.mark.parametrize("field", ["client-certificate-data", "client-key-data"])
def test_a_certificate_or_key_that_is_not_base64_is_said_without_it(served: Served, field: str) -> None:
    file = changed(served(cluster(A)), user={field: f"{SECRET}*"})
    with pytest.raises(NoClusterError, match="client-certificate-data and client-key-data must be base64") as raised:
        connect(kubeconfig=file)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
            "expected the name of a file with a certificate or key, got what is",
        ),
        ("/dev/null/key", "there is no file /dev/null/key"),
        ("/dev/zero", "there is no file /dev/zero"),
        ("large", r"a file is larger than 16 MiB: .*/large"),
        ("x" * 256, "a file cannot be read: File name too long"),
    ],
)
def test_a_key_that_is_no_file_is_said(served: Served, tmp_path: Path, name: str, said: str) -> None:
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1024**4)
    with pytest.raises(NoClusterError, match=said) as raised:
        connect(kubeconfig=changed(served(cluster(A)), user={"client-key": name}))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("ca", [{"certificate-authority-data": CA}, {"certificate-authority": "ca.crt"}])
def test_who_is_not_verified_has_no_ca(served: Served, tmp_path: Path, ca: dict[str, str]) -> None:
    (tmp_path / "ca.crt").write_text("x")
    file = changed(served(cluster(A)), **{"server": "https://api.lan", "insecure-skip-tls-verify": True} | ca)
    with pytest.raises(NoClusterError, match="certificate-authority and insecure-skip-tls-verify: remove one"):
        connect(kubeconfig=file)


def test_a_server_without_a_scheme_is_asked_by_http(served: Served) -> None:
    known = cluster(A)
    file = served(known)
    port = urlsplit(connect(kubeconfig=file).address).port
    for host in ("localhost", "127.0.0.1"):
        assert connect(kubeconfig=changed(file, server=f"{host}:{port}")).get("/version")
    for invalid in ("localhost/path", "https://", "unix:///socket"):
        with pytest.raises(NoClusterError, match="the server of a cluster must be a URL, or a host with its port"):
            connect(kubeconfig=changed(file, server=invalid))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"server": "https://api..lan"}, "the server of a cluster must have the name of a host, or an address"),
        ({"tls-server-name": ".api.lan"}, "tls-server-name must be the name of a host"),
        ({"tls-server-name": f"{'a' * 64}.lan"}, "tls-server-name must be the name of a host"),
        ({"tls-server-name": ".".join(["a" * 60] * 5)}, "tls-server-name must be the name of a host"),
        ({"tls-server-name": "a\0b"}, "tls-server-name must be the name of a host"),
    ],
)
def test_a_name_that_no_server_can_have_is_said(served: Served, fields: dict[str, str], said: str) -> None:
    with pytest.raises(NoClusterError, match=said):
        connect(kubeconfig=changed(served(cluster(A)), **fields))


@pytest.mark.parametrize("server", ["http://api.lan", "api.lan:80"])
def test_no_user_is_shown_where_others_can_read_along(served: Served, tmp_path: Path, server: str) -> None:
    known = cluster(A)
    file = served(known)
    through = {"server": server, "proxy-url": connect(kubeconfig=file).address}
    for user in ({"token": SECRET}, {"tokenFile": str(tmp_path / "missing")}, {"exec": {"command": "no-such-login"}}):
        assert connect(kubeconfig=changed(file, user=user, **through)).get("/version")
    assert [one["Authorization"] for one in known.headers] == [None] * 3


def test_a_user_in_the_address_of_the_server_is_an_error_without_it(served: Served) -> None:
    with pytest.raises(NoClusterError, match="has a user in it: write username and password") as raised:
        connect(kubeconfig=changed(served(cluster(A)), server=f"https://bob:{SECRET}@api.lan"))
    assert SECRET not in str(raised.value)


def test_a_token_counts_until_the_file_beside_it_can_be_read(served: Served, tmp_path: Path) -> None:
    known = cluster(A)
    api = connect(kubeconfig=changed(served(known), user={"tokenFile": "token", "token": "beside"}))
    for text in (None, "of-file\n", None):
        (tmp_path / "token").unlink(missing_ok=True)
        if text is not None:
            (tmp_path / "token").write_text(text)
        _later(api, 61)
        api.get("/version")
    assert [one["Authorization"] for one in known.headers] == ["Bearer beside", "Bearer of-file", "Bearer of-file"]


def test_a_name_and_a_password_are_utf8(served: Served) -> None:
    known = cluster(A)
    connect(kubeconfig=changed(served(known), user={"username": "ü", "password": "ß€"})).get("/version")
    assert known.headers[0]["Authorization"] == f"Basic {b64encode('ü:ß€'.encode()).decode()}"


def test_the_name_of_a_kubeconfig_may_have_colons(served: Served, tmp_path: Path) -> None:
    file = served(cluster(A)).rename(tmp_path / "arn:aws:eks")
    ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(file)])
    assert ran.exit_code == 0, ran.output


CONTENT = {"contexts": [], "users": [{"name": "a", "user": {"token": SECRET + 900 * "x"}}]}


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ("/dev/null/config", "/dev/null/config cannot be read: Not a directory"),
        ("DIRECTORY", "DIRECTORY cannot be read: Is a directory"),
        ("~nobody-has-this-name/config", "~nobody-has-this-name/config does not exist: set KUBECONFIG"),
        (json.dumps({"token": SECRET}), "KUBECONFIG must be paths of files: is it the content of a kubeconfig?"),
        (f"token: {SECRET}\n", "KUBECONFIG must be paths of files: is it the content of a kubeconfig?"),
        (json.dumps(CONTENT), "a file of KUBECONFIG cannot be read: File name too long"),
        ("/dev/zero", "/dev/zero cannot be read: larger than 64 MiB"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_without_what_may_be_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, paths: str, said: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", paths.replace("DIRECTORY", str(tmp_path)))
    ran = CliRunner().invoke(main, ["top", "--once"])
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"gpu-share: no cluster: {said.replace('DIRECTORY', str(tmp_path))}")
    with pytest.raises(certs.errors.NoClusterError) as raised:
        certs.connection.connect()
    assert SECRET not in ran.output + str(raised.value)


@pytest.mark.parametrize("levels", [3_000, 300_000])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_a_kubeconfig_of_brackets_is_one_sentence(tmp_path: Path, bracket: str, levels: int) -> None:
    file = tmp_path / "config"
    file.write_text(f"a: {bracket[0] * levels}{bracket[1] * levels}")
    with pytest.raises(NoClusterError, match="config is not valid YAML: correct the kubeconfig"):
        connect(kubeconfig=file)


def test_a_kubeconfig_may_be_a_pipe_of_the_shell(served: Served) -> None:
    content = served(cluster(A)).read_bytes()
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    assert connect(kubeconfig=Path(f"/dev/fd/{read}")).get("/version")
    os.close(read)
