"""A kubeconfig leads where it leads kubectl."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import certs.connection
from console.kubeconfig import NoClusterError, connect
from gpu_share import main
from tests.console.conftest import Served
from tests.console.kubeconfigs import changed
from tests.console.objects import cluster, gpu, state

CONNECTORS = [lambda: connect().address, lambda: certs.connection.connect().configuration.host]
A = state(gpu(), on="gpu-a")
TOKEN = "secret-token"  # noqa: S105 - of nobody


def own(directory: Path, name: str, *, current: str | None) -> Path:
    """Write a kubeconfig of a cluster with that name."""
    content: dict[str, Any] = {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "users": [{"name": name, "user": {"token": name}}],
    }
    file = directory / name
    file.write_text(json.dumps(content | ({} if current is None else {"current-context": current})))
    return file


@pytest.mark.parametrize("connector", CONNECTORS, ids=["console", "certs"])
@pytest.mark.parametrize(
    ("current", "leads_to"),
    [(("a", "b"), "a"), (("b", "a"), "b"), ((None, "b"), "b"), (("", "b"), "b"), (("a", ""), "a"), (("a", None), "a")],
)
def test_of_several_files_the_first_says_which_context_is_current(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    connector: Callable[[], str],
    current: tuple[str | None, str | None],
    leads_to: str,
) -> None:
    files = [own(tmp_path, name, current=one) for name, one in zip(("a", "b"), current, strict=True)]
    monkeypatch.setenv("KUBECONFIG", ":".join(str(one) for one in files))
    assert connector() == f"https://{leads_to}.example"


def test_files_that_are_empty_or_not_there_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").write_text("# later\n")
    own(tmp_path, "a", current="a")
    monkeypatch.setenv("KUBECONFIG", ":".join(str(tmp_path / name) for name in ("missing", "empty", "a", "empty")))
    api = connect()
    assert (api.context, api.namespace) == ("a", "of-a")


def test_an_empty_variable_leads_to_the_file_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".kube").mkdir()
    own(tmp_path, "a", current="a").rename(tmp_path / ".kube/config")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", "")
    assert connect().context == "a"


@pytest.mark.parametrize("written", ["token", "file"])
def test_a_token_ends_with_its_line(served: Served, tmp_path: Path, written: str) -> None:
    known = cluster(A)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    user = {"token": f"{TOKEN}\n"} if written == "token" else {"tokenFile": "token"}
    ran = CliRunner().invoke(main, ["top", "--kubeconfig", str(changed(served(known), user=user))])
    assert ran.exit_code == 0, ran.output
    assert {one["Authorization"] for one in known.headers} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("command", ["top", "doctor", "explain resnet"])
@pytest.mark.parametrize("token", [f"{TOKEN}\nb", f"{TOKEN}\u20ac"])
def test_a_token_that_no_header_can_have_is_said_without_it(served: Served, command: str, token: str) -> None:
    file = changed(served(cluster(A)), user={"token": token})
    ran = CliRunner().invoke(main, [*command.split(), "--kubeconfig", str(file)])
    assert isinstance(ran.exception, SystemExit)
    assert "the token has a character that HTTP does not allow: correct the kubeconfig" in ran.output
    assert TOKEN not in ran.output


def test_requests_are_made_as_the_user_that_the_kubeconfig_names(served: Served) -> None:
    user = {"as": "ann", "as-uid": "7", "as-groups": ["one", "two"], "as-user-extra": {"a/b": ["x", "y"]}, "token": "t"}
    known = cluster(A)
    assert connect(kubeconfig=changed(served(known), user=user)).get("/version")
    (headers,) = known.headers
    names = ("Impersonate-User", "Impersonate-Uid", "Impersonate-Group", "Impersonate-Extra-a%2Fb", "Authorization")
    assert [headers.get_all(name) for name in names] == [["ann"], ["7"], ["one", "two"], ["x", "y"], ["Bearer t"]]


def test_a_user_that_no_header_can_have_is_said(served: Served) -> None:
    with pytest.raises(NoClusterError, match="the user in as has a character that HTTP does not allow"):
        connect(kubeconfig=changed(served(cluster(A)), user={"as": "a\nb"}))


def test_groups_of_nobody_are_no_user(served: Served) -> None:
    with pytest.raises(NoClusterError, match="a user has as-uid, as-groups or as-user-extra, but no as"):
        connect(kubeconfig=changed(served(cluster(A)), user={"as-groups": ["system:masters"]}))


NO_CONTEXT = "no context is current, and none was named: correct the kubeconfig, or name another context by --context"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "FILE does not exist: set KUBECONFIG, or name a file by --kubeconfig"),
        ("hello", "FILE is not a valid kubeconfig: compare it with kubectl config view"),
        ("- a", "FILE is not a valid kubeconfig: compare it with kubectl config view"),
        ("contexts: [5]\ncurrent-context: a", "FILE is not a valid kubeconfig: compare it with kubectl config view"),
        ("", NO_CONTEXT),
        ("contexts: []", NO_CONTEXT),
    ],
)
def test_no_cluster_is_one_sentence_with_the_file(text: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)
    with pytest.raises(NoClusterError) as raised:
        connect(kubeconfig=file)
    assert str(raised.value) == f"no cluster: {said.replace('FILE', str(file))}"


@pytest.mark.parametrize(
    ("written", "said"),
    [(5, "FILE is not a valid kubeconfig"), (["a"], "FILE is not a valid kubeconfig"), (None, ""), ("", ""), ("b", "")],
)
def test_a_namespace_of_a_context_is_a_string_or_the_default(served: Served, written: object, said: str) -> None:
    file = _with_context(served(cluster(A)), namespace=written)
    if said:
        with pytest.raises(NoClusterError, match=said.replace("FILE", str(file))):
            connect(kubeconfig=file)
    else:
        assert connect(kubeconfig=file).namespace == (written or "default")


def _with_context(file: Path, **fields: object) -> Path:
    known = yaml.safe_load(file.read_text())
    for one in known["contexts"]:
        one["context"] |= fields
    file.write_text(json.dumps(known))
    return file


def test_a_context_is_chosen_by_name(served: Served) -> None:
    kubeconfig = served(cluster(A))
    assert connect(kubeconfig=kubeconfig, context="nowhere").address == "http://127.0.0.1:1"
    with pytest.raises(NoClusterError, match="missing"):
        connect(kubeconfig=kubeconfig, context="missing")
