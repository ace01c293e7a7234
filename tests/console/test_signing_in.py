"""The user of a kubeconfig signs in once for all requests, or the command ends with a sentence."""

import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import certs.connection
import console.api_server
from certs.errors import NoClusterError
from console.api_server import UnseenError
from console.kubeconfig import connect
from gpu_share import main
from tests.console.conftest import Served
from tests.console.kubeconfigs import changed
from tests.console.objects import cluster, gpu, state
from tests.console.stand_in import StandIn, status_of

A = state(gpu(), on="gpu-a")
COMMANDS = ["top --once", "doctor", "doctor --pre", "explain resnet"]
V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cret"  # noqa: S105 - of nobody
# Says each time that it was asked, and gives a token that lasts as long as Keycloak's do at most.
PLUGIN = f"""
import datetime, json, pathlib, sys, time
asked = pathlib.Path(sys.argv[1])
asked.write_text(asked.read_text() + "x" if asked.exists() else "x")
if asked.with_name("slow").exists():
    time.sleep(1)
if asked.with_name("broken").exists():
    sys.exit("the session has ended")
end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=float(sys.argv[2]))
status = {{"token": f"{SECRET}-{{len(asked.read_text())}}", "expirationTimestamp": end.isoformat(timespec="seconds")}}
print(json.dumps({{"apiVersion": "{V1}", "kind": "ExecCredential", "status": status}}))
"""


def by_plugin(directory: Path, *, seconds: float) -> tuple[dict[str, Any], Path]:
    asked = directory / "asked"
    return {
        "exec": {"apiVersion": V1, "command": sys.executable, "args": ["-c", PLUGIN, str(asked), str(seconds)]}
    }, asked


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plugin_that_is_missing_ends_each_command_and_no_request_is_made(served: Served, command: str) -> None:
    known = cluster(A)
    user = {"exec": {"apiVersion": V1, "command": "no-such-login", "installHint": "see https://x.example"}}
    ran = CliRunner().invoke(main, [*command.split(), "--kubeconfig", str(changed(served(known), user=user))])
    assert (ran.exit_code, ran.stdout, known.asked) == (2, "", [])
    said = "the credential plugin no-such-login cannot be started: No such file or directory: see https://x.example"
    assert ran.stderr == f"gpu-share: no cluster: {said}\n"


def test_a_plugin_is_asked_once_for_all_nodes_whatever_is_left_of_its_tokens(served: Served, tmp_path: Path) -> None:
    known = cluster(*(state(gpu(), on=f"gpu-{number}") for number in range(40)))
    user, asked = by_plugin(tmp_path, seconds=200)
    ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(changed(served(known), user=user))])
    assert ran.exit_code == 0, ran.output
    assert asked.read_text() == "x"
    assert len(known.headers) > 40
    assert {one["Authorization"] for one in known.headers} == {f"Bearer {SECRET}-1"}


def test_a_plugin_that_fails_later_leaves_a_view_with_its_words(served: Served, tmp_path: Path) -> None:
    known = cluster(A)
    user, asked = by_plugin(tmp_path, seconds=-60)
    api = connect(kubeconfig=changed(served(known), user=user))
    assert api.get("/version")
    (tmp_path / "broken").touch()
    _later(api)
    with pytest.raises(UnseenError, match="failed with exit code 1: the session has ended: run it by hand"):
        api.get("/version")
    assert asked.read_text() == "xx"


def test_the_time_that_a_plugin_takes_is_none_of_the_time_for_an_answer(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, asked = by_plugin(tmp_path, seconds=-60)
    api = connect(kubeconfig=changed(served(cluster(A)), user=user))
    monkeypatch.setattr(console.api_server, "DEADLINE_SECONDS", 0.5)
    (tmp_path / "slow").touch()
    _later(api)
    assert api.get("/version")
    assert asked.read_text() == "xx"


def test_a_token_that_is_rejected_is_asked_for_again(served: Served, tmp_path: Path) -> None:
    known = StandIn(raw={"/version": status_of(401, "Unauthorized")})
    user, asked = by_plugin(tmp_path, seconds=3600)
    api = connect(kubeconfig=changed(served(known), user=user))
    for _ in range(3):
        with pytest.raises(UnseenError, match="Unauthorized: sign in again"):
            api.get("/version")
    _later(api)
    known.raw.clear()
    assert api.get("/version")
    assert [one["Authorization"] for one in known.headers] == [f"Bearer {SECRET}-1"] * 3 + [f"Bearer {SECRET}-2"]
    assert asked.read_text() == "xx"


def test_a_file_of_a_token_is_read_again_after_a_minute_and_may_be_gone_for_a_while(
    served: Served, tmp_path: Path
) -> None:
    known = cluster(A)
    (tmp_path / "token").write_text("one\n")
    api = connect(kubeconfig=changed(served(known), user={"tokenFile": "token", "token": "of-old"}))
    for text, seconds in (("two", 0), ("two", 61), ("", 61), (None, 61), ("three", 61)):
        (tmp_path / "token").unlink(missing_ok=True)
        if text is not None:
            (tmp_path / "token").write_text(text)
        _later(api, seconds)
        api.get("/version")
    shown = [one["Authorization"].removeprefix("Bearer ") for one in known.headers]
    assert shown == ["one", "two", "two", "two", "three"]


def _later(api: Any, seconds: float = 6) -> None:
    """Have time pass for a user who has signed in."""
    login = api._client.rest_client.pool_manager._login
    before = login._clock
    login._clock = lambda: before() + seconds


def test_a_name_and_a_password_are_shown(served: Served) -> None:
    known = cluster(A)
    connect(kubeconfig=changed(served(known), user={"username": "ann", "password": "p"})).get("/version")
    assert known.headers[0]["Authorization"] == f"Basic {b64encode(b'ann:p').decode()}"


OIDC = {"client-id": "x", "client-secret": SECRET, "id-token": f"a.{SECRET}.c", "refresh-token": SECRET}


@pytest.mark.parametrize("provider", [{"name": "oidc", "config": OIDC}, {"name": "gcp"}, 5])
def test_an_auth_provider_is_one_sentence_and_nobody_is_asked(
    served: Served, monkeypatch: pytest.MonkeyPatch, provider: object
) -> None:
    known = cluster(A)
    file = served(known)
    issuer = {"idp-issuer-url": connect(kubeconfig=file).address}
    if isinstance(provider, dict) and "config" in provider:
        provider["config"] |= issuer
    file = changed(file, user={"auth-provider": provider})
    ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(file)])
    said = "the user signs in by auth-provider, which gpu-share does not do: use a credential plugin in its place"
    assert ran.output.startswith(f"gpu-share: no cluster: {said}, such as kubelogin for OpenID Connect")
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(NoClusterError, match=said):
        certs.connection.connect()
    assert known.asked == []


@pytest.mark.parametrize(
    "user",
    [
        {"token": {"x": SECRET}},
        {"token": f"{SECRET}\n{SECRET}"},
        {"token": None, "client-key-data": f"{SECRET}=", "client-certificate": SECRET},
        {
            "exec": {
                "command": "no-such-login",
                "apiVersion": V1,
                "args": [SECRET],
                "env": [{"name": "A", "value": SECRET}],
            }
        },
        {"exec": {"command": "no-such-login", "env": SECRET}},
        {"auth-provider": {"config": OIDC}},
        SECRET,
    ],
)
def test_no_message_has_what_a_user_keeps_secret(served: Served, monkeypatch: pytest.MonkeyPatch, user: object) -> None:
    file = changed(served(cluster(A)), user=user)
    monkeypatch.setenv("KUBECONFIG", str(file))
    messages = [CliRunner().invoke(main, [*command.split()]).output for command in (*COMMANDS, "certs ensure")]
    assert all("no cluster: " in one for one in messages)
    assert not [one for one in messages if SECRET in one and f"there is no file {file.parent / SECRET}" not in one]


def test_a_line_that_is_not_yaml_is_named_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(f"users:\n- {{name: a, user: {{token: {SECRET}}}: }}\n")
    ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(file)])
    assert f"no cluster: {file} is not valid YAML, line 2: correct the kubeconfig" in ran.output
    assert SECRET not in ran.output


def test_what_a_context_names_must_be_there(served: Served) -> None:
    file = served(cluster(A))
    for known, gone in (("viewer", "user viewer"), ("c", "cluster c")):
        content = json.loads(changed(file).read_text())
        for one in (*content["users"], *content["clusters"]):
            one["name"] = "other" if one["name"] == known else one["name"]
        broken = file.with_name("broken")
        broken.write_text(json.dumps(content))
        ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(broken)])
        assert f"no cluster: there is no {gone}: correct the kubeconfig" in ran.output
