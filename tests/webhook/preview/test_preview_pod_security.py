"""`preview` decides as admission does in namespaces where Pod Security forbids hostIPC and hostPath volumes."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.commands import POD, preview
from tests.webhook.preview.previewed import titles

OWN_USERS = POD.replace("spec:", "spec:\n  hostUsers: false")  # denied with hostIPC
OWN_IPC = POD.replace("spec:", "spec:\n  hostIPC: true")  # denied without
DENIED = "denied, HostUsersConflict"
UNKNOWN = (
    "whether Pod Security enforces baseline or restricted in default is not known (a Namespace beside the pods or "
    "--pod-security says so)"
)
GRANT = (
    '{"policy":"_default","strategy":"mps","attach":"ATTACH","resource":"gpu-share.dev/vgpu",'
    '"containers":{"main":{"vgpus":2,"share":"0.2","of":10}}}'
)


def namespace(name: str, level: str = "") -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def beside(*others: dict[str, Any], pod: str = OWN_USERS) -> str:
    return "\n---\n".join([*map(json.dumps, others), pod])


@pytest.mark.parametrize(
    ("level", "of_users", "of_ipc"),
    [
        ("restricted", "granted", "denied, ConflictingRequest"),
        ("baseline", "granted", "denied, ConflictingRequest"),
        ("privileged", DENIED, "granted"),
    ],
)
def test_the_level_that_the_user_names_decides(level: str, of_users: str, of_ipc: str) -> None:
    for text, said in ((OWN_USERS, of_users), (OWN_IPC, of_ipc)):
        shown = preview(text, "--pod-security", level, code=int(said != "granted")).stdout
        assert f"Pod default/web: {said}" in shown
        assert UNKNOWN not in shown


@pytest.mark.parametrize(
    ("others", "options", "said"),
    [
        ([namespace("default", "restricted")], [], "granted"),
        ([{"apiVersion": "v1", "kind": "List", "items": [namespace("default", "baseline")]}], [], "granted"),
        ([namespace("default", "privileged")], [], DENIED),
        ([namespace("default")], [], DENIED),
        ([namespace("default", "restricted")], ["--pod-security", "privileged"], DENIED),
    ],
)
def test_a_namespace_beside_the_pods_decides_unless_the_user_does(
    others: list[dict[str, Any]], options: list[str], said: str
) -> None:
    shown = preview(beside(*others), *options, code=int(said == DENIED)).stdout
    assert f"Pod default/web: {said}" in shown
    assert UNKNOWN not in shown


def test_a_namespace_of_another_name_says_nothing() -> None:
    shown = preview(beside(namespace("secure", "restricted")), code=1).stdout
    assert f"Pod default/web: {DENIED}" in shown
    assert f"Warning: {UNKNOWN}: if it does, the pod is granted.\n" in shown


def test_what_is_not_known_is_said_where_it_decides() -> None:
    shown = preview(OWN_IPC).stdout
    assert "Pod default/web: granted" in shown
    assert f"Warning: {UNKNOWN}: if it does, the pod is denied with ConflictingRequest: The pod has hostIPC" in shown
    assert UNKNOWN not in preview(POD).stdout  # whose explanation says what it gets there
    assert f"web: warning: {UNKNOWN}: if it does" in preview(OWN_IPC, "-o", "yaml").stderr


@pytest.mark.parametrize("output", ["yaml", "diff", "patch"])
def test_what_is_written_says_for_which_namespaces_it_holds(output: str) -> None:
    written = f"gpu-share: {UNKNOWN}: pods are written as where it does not\n"
    assert preview(POD, "-o", output).stderr.endswith(written)
    made = preview(POD, "-o", output, "--pod-security", "baseline")
    assert "not known" not in made.stderr
    assert "hostIPC" not in made.stdout
    without_share = POD.replace('gpu-share: "0.2"', 'a: "b"')
    assert "not known" not in preview(without_share, "-o", output).stderr


def test_a_pod_without_attachment_says_why() -> None:
    shown = preview(POD, "--pod-security", "restricted").stdout
    assert "(mps.attach: auto, and Pod Security enforces baseline or restricted here); nothing is attached" in shown


@pytest.mark.parametrize("attach", ["node", "pod"])
def test_a_policy_that_does_not_go_by_it_leaves_nothing_open(attach: str, tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text(f"mps: {{attach: {attach}}}\n")
    assert "not known" not in preview(POD, "--policies", tmp_path, "-o", "yaml").stderr


@pytest.mark.parametrize(("attach", "said"), [("node", "granted"), ("pod", DENIED)])
def test_the_grant_of_a_stored_pod_says_what_was_enforced(attach: str, said: str) -> None:
    limits = "    resources: {limits: {gpu-share.dev/vgpu: 2}, requests: {gpu-share.dev/vgpu: 2}}\n"
    annotation = f"    gpu-share.dev/grant: '{GRANT.replace('ATTACH', attach)}'\n"
    stored = OWN_USERS.replace("spec:", f"{annotation}  uid: a-b\nspec:") + limits
    shown = preview(stored, code=int(said == DENIED)).stdout
    assert f"Pod default/web: {said}" in shown
    assert UNKNOWN not in shown


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a kubectl on the PATH whose cluster enforces restricted in `secure` and has `plain` with no label."""
    some = {"apiVersion": "v1", "kind": "List", "items": [namespace("secure", "restricted"), namespace("plain")]}
    (tmp_path / "namespaces").write_text(json.dumps(some))
    (tmp_path / "policies").write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}))
    script = tmp_path / "kubectl"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n'
        f'case "$*" in *"get namespaces"*) /bin/cat {tmp_path}/namespaces; exit 1;; esac\n'
        f'case "$*" in *"get configmap"*) /bin/cat {tmp_path}/policies;; esac\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "calls"


def test_a_cluster_says_what_it_enforces_in_the_namespaces_that_it_shows(calls: Path) -> None:
    places = ("secure", "plain", "hidden")
    pods = [OWN_USERS.replace("name: web", f"name: web\n  namespace: {place}") for place in places]
    text = "---\n".join(pods)
    assert titles(text, "--cluster", code=1) == {
        "Pod secure/web": "granted",
        "Pod plain/web": DENIED,
        "Pod hidden/web": DENIED,
    }
    assert "get namespaces hidden plain secure --output json --ignore-not-found" in calls.read_text()
    assert "restricted in hidden is not known" in preview(text, "--cluster", code=1).stdout
    assert preview(text, "--cluster", code=1).stdout.count("not known") == 1
    overruled = beside(namespace("plain", "baseline"), pod=pods[1])
    assert titles(overruled, "--cluster") == {"Pod plain/web": "granted"}
    assert titles(beside(namespace("secure"), pod=pods[0]), "--cluster") == {"Pod secure/web": "granted"}


def test_kubectl_is_given_nothing_that_is_no_namespace(calls: Path) -> None:
    bad = OWN_USERS.replace("name: web", "name: web\n  namespace: --raw=/x")
    assert "not known" in preview(bad, "--cluster", code=1).stdout
    assert "--raw" not in calls.read_text()
