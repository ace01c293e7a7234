"""`gpu-share top` on a real cluster: what it shows, and by which rights."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import eventually
from tests.cluster.installation import Installation
from tests.cluster.pods import Place, container, pod
from tests.cluster.view import account, shown, view

_BOUND = "gpu-share-viewer-of-the-tests"


@pytest.fixture
def viewer(installed: Installation, tmp_path: Path) -> Iterator[Path]:
    """Give the kubeconfig of a user who has the rights of the manifests, and no other."""
    run, who = installed.cluster.run, "--serviceaccount=default:viewer"
    with account(installed.cluster, "viewer", tmp_path) as kubeconfig:
        run(f"kubectl create clusterrolebinding {_BOUND} --clusterrole=gpu-share-viewer {who}")
        run(f"kubectl -n gpu-share create rolebinding {_BOUND} --role=gpu-share-viewer {who}")
        try:
            yield kubeconfig
        finally:
            run(f"kubectl delete clusterrolebinding {_BOUND}")
            run(f"kubectl -n gpu-share delete rolebinding {_BOUND}")


def _tenant(top: Any, namespace: str) -> Any:
    for node in top["nodes"]:
        for gpu in node["gpus"]:
            for tenant in gpu["tenants"]:
                if tenant["namespace"] == namespace:
                    return gpu, tenant
    return None


def test_who_has_the_rights_of_the_manifests_sees_gpus_tenants_what_waits_and_what_is_denied(
    place: Place, viewer: Path
) -> None:
    place.started(pod("0.3"))
    assert place.create(pod(None, container(resources={"limits": {"gpu-share.dev/vgpu": "10"}}), name="whole")).ok
    place.running("whole")
    waits = pod("0.8", name="waits")
    assert place.create(waits).ok
    too_large = pod(None, annotations={"gpu-share": "7.5"})
    template = {"metadata": {"labels": {"app": "denied"}, **too_large["metadata"]}, "spec": too_large["spec"]}
    template["metadata"].pop("name")
    place.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "denied"},
            "spec": {"selector": {"matchLabels": {"app": "denied"}}, "template": template},
        }
    )

    def complete() -> Any:
        top = shown("top", kubeconfig=viewer)
        found = _tenant(top, place.name)
        denied = [one for one in top["denied"] if one["namespace"] == place.name]
        rows = {one["pod"]: one for one in top["pods"] if one["namespace"] == place.name}
        return (top, found, denied, rows) if found and denied and rows.get("waits", {}).get("why") else None

    top, (gpu, tenant), denied, rows = eventually(complete, what="top shows all of it")
    assert top["unseen"] == []
    assert [len(node["gpus"]) for node in top["nodes"]] == [2]
    assert sum(gpu["granted"] for gpu in top["nodes"][0]["gpus"]) == 13
    assert gpu["healthy"]
    assert tenant["memory_limit_bytes"] > 0
    assert "Insufficient gpu-share.dev/vgpu" in rows["waits"]["why"]
    assert "7.5" in denied[0]["message"]
    assert rows["model"]["share"] == "0.3"
    text = view("top", "--once", kubeconfig=viewer).stdout
    assert f"! {place.name}/waits is Pending: " in text
    assert f"✗ {place.name}/ReplicaSet/denied-" in text


def test_kubectl_finds_it_as_a_plugin(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    assert "1 node, 2 GPUs" in installed.cluster.run("kubectl gpu-share top --once")


def test_who_has_no_rights_is_told_which_are_missing(installed: Installation, tmp_path: Path) -> None:
    with account(installed.cluster, "nobody", tmp_path) as kubeconfig:
        ran = view("top", "--once", kubeconfig=kubeconfig)
    assert ran.returncode == 1
    for right in ("list nodes", "list pods", "list pods in namespace gpu-share", "list events"):
        assert f"the right to {right} is missing" in ran.stdout


def test_without_the_proxy_nodes_and_pods_are_seen_and_that_right_is_named(
    installed: Installation, place: Place, viewer: Path
) -> None:
    place.started(pod("0.2"))
    installed.cluster.run(f"kubectl -n gpu-share delete rolebinding {_BOUND}")
    ran = view("top", "--once", kubeconfig=viewer)
    installed.cluster.run(
        f"kubectl -n gpu-share create rolebinding {_BOUND} --role=gpu-share-viewer --serviceaccount=default:viewer"
    )
    assert ran.returncode == 0
    assert "the right to get pods/proxy in namespace gpu-share is missing" in ran.stdout
    assert place.name in ran.stdout
