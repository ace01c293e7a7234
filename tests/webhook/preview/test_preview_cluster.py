"""`preview` says whose policies it used, and takes those of a cluster by the user's own kubectl."""

import errno
import json
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.contract import CLUSTER_CONFIG_MAP, NAMESPACE, POLICIES_CONFIG_MAP
from tests.manifests.render import MANIFESTS, render
from tests.webhook.commands import POD, preview, run

TEAM = {"_default.yaml": 'share:\n  maximum: "0.1"\n'}
LIMITED = POD.replace('gpu-share: "0.2"', 'gpu-share: "0.1"')


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a kubectl on the PATH that answers as told, knows no Deployment, and writes down how it was called."""

    def put(answer: object = None, *, code: int = 0, stderr: str = "", namespace: str = "") -> Path:
        directory = tmp_path / "bin"
        directory.mkdir()
        calls = tmp_path / "calls"
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (tmp_path / "answer").write_text(text)
        (tmp_path / "stderr").write_text(stderr)
        script = directory / "kubectl"
        script.write_text(
            f'#!/bin/sh\necho "KUBECONFIG=$KUBECONFIG $@" >> {calls}\n'
            f'case "$*" in *current-context*) echo kind-a; exit 0;; *namespace}}) echo -n {namespace}; exit 0;; esac\n'
            'case "$*" in *"get deployment"*--ignore-not-found*) exit 0;; esac\n'
            f"/bin/cat {tmp_path}/answer; /bin/cat {tmp_path}/stderr >&2; exit {code}\n"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(directory))
        return calls

    return put


def config_map(data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data}


def test_the_policies_of_the_cluster_decide_and_are_named(kubectl: Callable[..., Path]) -> None:
    calls = kubectl(config_map(TEAM))
    text = preview(POD, "--cluster", code=1).stdout
    first, second, *_ = text.splitlines()
    assert (
        first == "Policies: ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster of the cluster, context kind-a"
    )
    assert second == "Pod default/web: denied, ShareAboveMaximum"
    assert "at most 0.1 is allowed here (_default.yaml:2)" in text
    assert "get configmap gpu-share-policies --namespace gpu-share --output json" in calls.read_text()


@pytest.mark.parametrize(
    ("of_context", "options", "written", "place"),
    [
        ("team-vision", [], "", "team-vision"),
        ("team-vision", ["-n", "science"], "", "science"),
        ("team-vision", [], "written", "written"),
        ("", [], "", "default"),
    ],
)
def test_a_pod_without_a_namespace_is_in_that_of_the_context(
    kubectl: Callable[..., Path], of_context: str, options: list[str], written: str, place: str
) -> None:
    kubectl(config_map(TEAM), namespace=of_context)
    text = LIMITED.replace("name: web", f"name: web\n  namespace: {written}") if written else LIMITED
    assert f"Pod {place}/web: granted" in preview(text, "--cluster", *options).stdout


def test_context_and_kubeconfig_are_kubectls(kubectl: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = kubectl(config_map(TEAM))
    monkeypatch.setenv("KUBECONFIG", "/somewhere/config")
    options = ("--context", "prod", "--kubeconfig", "/my/config")
    text = preview(POD, "--cluster", *options, code=1).stdout
    assert text.startswith(
        "Policies: ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster of the cluster, context prod\n"
    )
    called = calls.read_text().splitlines()
    assert len(called) == 5
    assert all(one.startswith("KUBECONFIG=/somewhere/config --context=prod --kubeconfig=/my/config ") for one in called)


def test_a_broken_file_of_the_cluster_denies_its_namespace_and_no_other(kubectl: Callable[..., Path]) -> None:
    kubectl(config_map({"team.yaml": "mode: x"}))
    assert "Pod team/web: denied, PolicyBroken" in preview(POD, "--cluster", "-n", "team", code=1).stdout
    assert "Pod other/web: granted" in preview(POD, "--cluster", "-n", "other").stdout


def test_a_file_of_the_cluster_that_is_not_utf_8_is_a_broken_one(kubectl: Callable[..., Path]) -> None:
    kubectl({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"team.yaml": "bW9kZTog/w=="}})
    assert "Pod team/web: denied, PolicyBroken" in preview(POD, "--cluster", "-n", "team", code=1).stdout
    assert "Pod other/web: granted" in preview(POD, "--cluster", "-n", "other").stdout


def test_they_are_the_config_maps_that_the_manifests_install() -> None:
    names = [one["metadata"] for one in render(MANIFESTS) if one["kind"] == "ConfigMap"]
    installed = {(one["namespace"], one["name"]) for one in names}
    assert {(NAMESPACE, POLICIES_CONFIG_MAP), (NAMESPACE, CLUSTER_CONFIG_MAP)} <= installed


@pytest.mark.parametrize("output", ["diff", "yaml", "patch"])
def test_the_other_outputs_name_the_policies_on_stderr(output: str, kubectl: Callable[..., Path]) -> None:
    kubectl(config_map({}))
    said = "gpu-share: policies: ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster of the cluster, context"
    assert preview(POD, "--cluster", "-o", output).stderr.startswith(said)


def test_without_a_cluster_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: enforce")
    assert preview(POD, "--policies", tmp_path).stdout.startswith(f"Policies: {tmp_path}\n")
    assert preview(POD).stdout.startswith("Policies: policies/files\n")
    assert preview(POD, "-o", "yaml").stderr.startswith("gpu-share: policies: policies/files\n")


def test_the_directory_is_named_whole_where_the_one_of_now_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert re.match("Policies: /.*/policies/files\n", preview(POD).stdout)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            {"answer": None, "code": 1, "stderr": "Error from server (Forbidden): no"},
            "(Error from server (Forbidden): no)",
        ),
        (
            {
                "answer": None,
                "code": 1,
                "stderr": "E1122 09:05:48.741028 20720 memcache.go:265] x\nThe server was refused",
            },
            "(The server was refused)",
        ),
        (
            {"answer": None, "code": 1, "stderr": "E1122 09:05:48.741028 20720 memcache.go:265] x"},
            "(E1122 09:05:48.741028 20720 memcache.go:265] x)",
        ),
        ({"answer": "not json"}, "kubectl did not answer in JSON"),
        ({"answer": config_map({"_default.yaml": 5})}, "holds no policy files"),
        ({"answer": []}, "holds no policy files"),
        (
            {"answer": config_map({"_default.yaml": "share:\n  maximum: 1\n"})},
            "--cluster: ConfigMap gpu-share/gpu-share-cluster/_default.yaml:2: share.maximum: expected",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(answer: dict[str, Any], words: str, kubectl: Callable[..., Path]) -> None:
    kubectl(answer.pop("answer"), **answer)
    result = preview(POD, "--cluster", code=2)
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_kubectl_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "kubectl was not found: install it, or name a directory" in preview(POD, "--cluster", code=2).stderr


@pytest.mark.parametrize("options", [("--cluster", "--policies", "a"), ("--context", "a"), ("--kubeconfig", "a")])
def test_options_that_contradict_each_other_are_rejected(options: tuple[str, ...]) -> None:
    assert run("preview", "-", *options, given=POD, code=2).stdout == ""


def test_policies_by_the_environment_give_way_to_the_cluster(
    kubectl: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl(config_map(TEAM))
    monkeypatch.setenv("GPU_SHARE_POLICIES", "policies/files")
    assert "denied" in preview(POD, "--cluster", code=1).stdout


def test_where_no_file_can_be_written_the_policies_of_a_cluster_are_not_read(
    kubectl: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    kubectl(config_map(TEAM))
    monkeypatch.setattr(tempfile, "gettempdir", none)
    told = preview(POD, "--cluster", code=2).stderr
    assert told == (
        "gpu-share: --cluster: policies are read from files: No usable temporary directory found in ['/tmp']: "
        "name a directory by TMPDIR\n"
    )
