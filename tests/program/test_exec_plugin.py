"""A credential plugin is asked as kubectl asks it, and each failure is one sentence."""

import io
import json
import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from program.bounded_process import ProcessError, output_of
from program.exec_plugin import Exec, ExecPlugin
from program.login import CredentialError

V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cret-token"  # noqa: S105 - of nobody


def plugin(directory: Path, *command: str, **fields: Any) -> ExecPlugin:
    wanted = {"apiVersion": V1, "command": command[0], "args": command[1:]} | fields
    return ExecPlugin(msgspec.convert(wanted, Exec), directory=directory, cluster={"server": "https://a.example"})


def printing(directory: Path, answer: object, **fields: Any) -> ExecPlugin:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return plugin(directory, sys.executable, "-c", f"print({text!r})", **fields)


def answer(version: str = V1, **status: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "ExecCredential", "status": status}


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
def test_a_token_is_shown_until_shortly_before_it_expires(tmp_path: Path, version: str) -> None:
    said = answer(version, token=f"{SECRET}\n", expirationTimestamp="2026-07-01T10:00:00Z")
    found = printing(tmp_path, said, apiVersion=version)()
    assert (found.authorization, found.end - found.due) == (f"Bearer {SECRET}", 10)
    assert time.strftime("%F %T", time.gmtime(found.end)) == "2026-07-01 10:00:00"
    assert SECRET not in repr(found)


def test_a_certificate_comes_with_its_key_and_neither_is_shown(tmp_path: Path) -> None:
    found = printing(tmp_path, answer(clientCertificateData="CERT", clientKeyData="KEY"))()
    assert found.certificate == b"CERT\nKEY\n"
    assert "KEY" not in repr(found)


TELLING = """
import json, os, sys
told = {"env": os.environ["WHO"], "info": json.loads(os.environ["KUBERNETES_EXEC_INFO"]), "in": sys.stdin.read()}
status = {"token": json.dumps(told)}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


@pytest.mark.parametrize("wants", [True, False])
def test_a_plugin_is_told_what_the_protocol_says_and_of_the_cluster_if_it_wants_to_be(
    tmp_path: Path, *, wants: bool
) -> None:
    variables = [{"name": "WHO", "value": "ann"}]
    asked = plugin(tmp_path, sys.executable, "-c", TELLING, env=variables, provideClusterInfo=wants)
    told = json.loads(asked().authorization.removeprefix("Bearer "))
    spec = {"interactive": False} | ({"cluster": {"server": "https://a.example"}} if wants else {})
    assert told == {"env": "ann", "info": {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}, "in": ""}


def test_a_command_with_a_directory_is_one_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/own"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer(token=SECRET))}'\n")
    program.chmod(0o755)
    assert plugin(tmp_path, "bin/own")().authorization == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("hello", "JSON is malformed"),
        ("", "Input data was truncated"),
        ([], "Expected `object`, got `array`"),
        ({"apiVersion": V1, "kind": "ExecCredential"}, "expected a token or a certificate, got neither"),
        (answer("client.authentication.k8s.io/v1beta1", token=SECRET), f"expected kind ExecCredential of {V1}"),
        (answer(clientCertificateData="x"), "expected a certificate with its key, got one of them"),
        (answer(token=f"{SECRET}\nx"), "the token has a character that HTTP does not allow"),
        (answer(token=SECRET, expirationTimestamp="soon"), "Invalid isoformat string: 'soon'"),
    ],
)
def test_an_answer_that_is_none_is_one_sentence_without_the_token(tmp_path: Path, said: object, why: str) -> None:
    with pytest.raises(CredentialError) as raised:
        printing(tmp_path, said)()
    assert f"the credential plugin {sys.executable} gave no valid ExecCredential: {why}" in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + json.dumps(answer(token=SECRET, expirationTimestamp="2026-07-01T10:00:00Z")),
        f"""
apiVersion: {V1}
kind: ExecCredential
status:
  expirationTimestamp: 2026-07-01T10:00:00Z
  token: {SECRET}
""",
    ],
    ids=["after a mark of its encoding", "in YAML"],
)
def test_an_answer_is_taken_as_kubectl_takes_it(tmp_path: Path, text: str) -> None:
    found = printing(tmp_path, text)()
    assert (found.authorization, time.strftime("%F", time.gmtime(found.end))) == (f"Bearer {SECRET}", "2026-07-01")


def test_a_plugin_is_found_by_the_path_of_the_user_and_not_by_that_in_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "own"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer(token=SECRET))}'\n")
    program.chmod(0o755)
    theirs = {"env": [{"name": "PATH", "value": str(tmp_path)}]}
    with pytest.raises(CredentialError, match="the credential plugin own cannot be started: No such file"):
        plugin(tmp_path, "own", **theirs)()
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert plugin(tmp_path, "own", env=[{"name": "PATH", "value": "/bin"}])().authorization == f"Bearer {SECRET}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".:/bin")  # no program of the directory that somebody happens to be in
    with pytest.raises(CredentialError, match="No such file"):
        plugin(tmp_path, "own")()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_a_plugin_says_is_seen_the_first_time_also_where_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    says = f"echo sign in at https://x.example >&2; echo '{json.dumps(answer(token=SECRET))}'"
    asked = plugin(tmp_path, "sh", "-c", says, interactiveMode="Never")
    for _ in range(2):  # later the terminal is that of a view
        asked()
        assert terminal.getvalue() == "sign in at https://x.example\n"


def test_a_plugin_that_fails_is_told_with_the_last_of_its_words(tmp_path: Path) -> None:
    words = "import sys; sys.stderr.write('x' * 9**6 + '\\n\\x1b[2J Token has\\nexpired'); sys.exit(255)"
    with pytest.raises(CredentialError) as raised:
        plugin(tmp_path, sys.executable, "-c", words)()
    said = str(raised.value)
    assert "failed with exit code 255: xxx" in said
    assert said.endswith("xxx ?[2J Token has expired: run it by hand, or sign in again")
    assert len(said) < 400


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "No such file or directory: install it, or correct the kubeconfig"),
        ({"installHint": "see\nhttps://x.example"}, "No such file or directory: see https://x.example"),
        ({"command": "true", "args": ["a\0b"]}, "invalid arguments: install it"),
    ],
)
def test_a_plugin_that_is_not_there_is_told_with_how_it_is_installed(
    tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(CredentialError, match=f"the credential plugin (no-such-login|true) cannot be started: {said}"):
        plugin(tmp_path, "no-such-login", **fields)()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"command": ""}, "a credential plugin must have a command"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, f"must have the apiVersion {V1} or "),
        ({"interactiveMode": "Always"}, "asks somebody at a terminal"),
    ],
)
def test_a_plugin_that_kubectl_would_not_ask_is_not_asked(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(CredentialError, match=said):
        plugin(tmp_path, "true", **fields)()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo waiting for you >&2; exec sleep 60", "has not ended after 0.5 s: waiting for you"),
        ("exec yes", "printed more than 1048576 bytes"),
        ("kill -9 $$", "was ended by signal 9"),
    ],
)
def test_a_program_costs_no_more_than_its_time_and_some_memory(command: str, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(ProcessError) as raised:
        output_of(["sh", "-c", command], env={}, stdin=None, is_attended=False, within_seconds=0.5)
    assert str(raised.value) == said
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("held", ["1>&2", "2>/dev/null"], ids=["what it says", "what it prints"])
def test_a_program_may_leave_another_one_behind_that_holds_its_outputs(held: str) -> None:
    began = time.monotonic()
    command = ["sh", "-c", f"sleep 60 {held} & echo said >&2; echo printed"]
    assert output_of(command, env={}, stdin=None, is_attended=False, within_seconds=1) == b"printed\n"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("ends", "is_left"), [("wait", False), ("echo printed", True)], ids=["hangs", "ends"])
def test_a_program_that_hangs_is_ended_with_its_children_and_one_that_ends_may_leave_a_browser(
    tmp_path: Path, ends: str, *, is_left: bool
) -> None:
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    command = ["sh", "-c", f"exec 3>{tmp_path}/held; sleep 5 >&3 2>&3 & {ends}"]
    with suppress(ProcessError):
        output_of(command, env={}, stdin=None, is_attended=False, within_seconds=1)
    is_held = not select.select([held], [], [], 1)[0]  # readable once nobody holds it
    assert is_held is is_left
    os.close(held)
