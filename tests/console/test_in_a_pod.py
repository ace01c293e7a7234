"""In a pod, its own cluster is that of who has no kubeconfig, and of nobody else."""

import errno
import json
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config

import certs.connection
import certs.errors
from console.kubeconfig import NoClusterError, connect
from tests.console.conftest import Served
from tests.console.objects import cluster, gpu, state

HERE = "https://10.0.0.1:443"
CONTEXT = "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
CLUSTER = CONTEXT + "clusters: [{name: a, cluster: {server: 'https://a.example'}}]\n"


@pytest.fixture(autouse=True)
def _in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(settings: client.Configuration) -> None:
        settings.host = HERE

    monkeypatch.setattr(config, "load_incluster_config", load)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


@pytest.mark.parametrize("text", [None, "", "# later\n", "apiVersion: v1\nkind: Config\n", "contexts: []"])
def test_without_a_kubeconfig_or_with_an_empty_one_it_is_the_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    api = connect()
    assert (api.address, api.context) == (HERE, "(in the cluster)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters: [\n  oops: }", "FILE is not valid YAML, line 2: correct the kubeconfig"),
        ("- a", "FILE is not a valid kubeconfig"),
        (CONTEXT, "there is no cluster a: correct the kubeconfig"),
        (CLUSTER, "there is no user a: correct the kubeconfig"),
        (CLUSTER + "users: [{name: a, user: {tokenFile: gone}}]", "the token cannot be read: DIRECTORY/gone"),
        (CLUSTER + "users: [{name: a, user: {client-key: gone}}]", "there is no file DIRECTORY/gone: correct"),
        (CLUSTER + "users: [{name: a, user: {exec: {command: gone, apiVersion: x}}}]", "the credential plugin gone"),
    ],
)
def test_a_kubeconfig_that_is_broken_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(NoClusterError) as raised:
        connect()
    expected = said.replace("FILE", str(file)).replace("DIRECTORY", str(tmp_path))
    assert str(raised.value).startswith(f"no cluster: {expected}")


def test_an_address_that_no_server_can_have_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(settings: client.Configuration) -> None:
        settings.host = "https://a..b:443"

    monkeypatch.setattr(config, "load_incluster_config", load)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(NoClusterError, match="or the address of the API server, is invalid"):
        connect()


def test_who_names_a_kubeconfig_or_a_context_does_not_mean_the_pod(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(NoClusterError, match="does not exist"):
        connect(kubeconfig=tmp_path / "missing")
    with pytest.raises(NoClusterError, match="does not exist"):
        connect(context="a")
    assert connect(kubeconfig=served(cluster(state(gpu(), on="gpu-a")))).context == "here"


@pytest.mark.parametrize("reason", ["Service token file does not exist.", "Service certification file does not exist."])
def test_a_service_account_that_cannot_be_used_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    def load(_: client.Configuration) -> None:
        raise config.ConfigException(reason)

    monkeypatch.setattr(config, "load_incluster_config", load)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    said = f"no cluster: the pod's service account cannot be used: {reason.rstrip('.')}; and .*missing does not exist"
    with pytest.raises(NoClusterError, match=said):
        connect()


def test_a_service_account_that_nobody_may_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: client.Configuration) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "token")

    monkeypatch.setattr(config, "load_incluster_config", load)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(NoClusterError, match="the service account cannot be read: Permission denied; and "):
        connect()
    with pytest.raises(certs.errors.NoClusterError, match="the service account cannot be read: Permission denied"):
        certs.connection.connect()


def test_the_namespace_is_the_pods_own_unless_a_context_names_one(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.kubeconfig.own_namespace", lambda _: "own")
    file = served(cluster(state(gpu(), on="gpu-a")))
    known = yaml.safe_load(file.read_text())
    for named, expected in ((None, "own"), ("default", "default")):
        known["contexts"][0]["context"]["namespace"] = named
        file.write_text(json.dumps(known))
        assert connect(kubeconfig=file).namespace == expected
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    assert connect().namespace == "own"
