"""What is there once the page's commands have run."""

import re

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.image import NAME, ROOT
from tests.cluster.installation import SHOWN, SIMULATED, VGPU, VGPUS, Installation
from tests.cluster.pods import Place, container, pod

RESTART = "kubectl -n gpu-share rollout restart deployment/gpu-share-certs"

POLICIES = ("gpu-share", "gpu-share-changes")


def test_every_node_advertises_its_vgpus(installed: Installation) -> None:
    for node in installed.nodes():
        assert int(installed.allocatable(node)[VGPU]) >= SHOWN  # more while something is held
        assert installed.capacity(node)[VGPU] == VGPUS


def test_the_api_server_finds_nothing_wrong_with_the_types_in_the_admission_policies(
    installed: Installation, cluster: Cluster
) -> None:
    assert installed.overlay == SIMULATED
    for name in POLICIES:
        path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}"
        status = cluster.api.get(path)["status"]
        assert status["typeChecking"].get("expressionWarnings", []) == []


def test_installing_again_replaces_no_pod(installed: Installation) -> None:
    before = [one["metadata"]["uid"] for part in ("webhook", "plugin") for one in installed.pods(part)]
    installed.apply(SIMULATED)
    installed.wait_until_ready()
    assert [one["metadata"]["uid"] for part in ("webhook", "plugin") for one in installed.pods(part)] == before


def test_kubectl_diff_shows_nothing_after_an_installation(installed: Installation, cluster: Cluster) -> None:
    installed.apply(SIMULATED)
    shown = cluster.attempt(f"kubectl diff -k {SIMULATED}", cwd=installed.tree)
    assert (shown.returncode, shown.stdout) == (0, "")


def test_kubectl_diff_shows_nothing_after_a_pass_by_hand(installed: Installation, cluster: Cluster) -> None:
    installed.apply(SIMULATED)
    # Twice within a second is refused.
    eventually(lambda: not cluster.attempt(RESTART).returncode, what="a restart")
    installed.run("kubectl -n gpu-share rollout status deployment/gpu-share-certs")
    shown = cluster.attempt(f"kubectl diff -k {SIMULATED}", cwd=installed.tree)
    assert (shown.returncode, shown.stdout) == (0, "")


def test_another_image_can_be_applied_right_after_an_installation(installed: Installation, cluster: Cluster) -> None:
    installed.apply(SIMULATED)
    other = cluster.run(f"kubectl kustomize {SIMULATED}", cwd=installed.tree).replace(NAME, f"{NAME}-next")
    assert f"{NAME}-next" in other
    ran = cluster.attempt("kubectl apply --dry-run=server -f -", stdin=other)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_image_of_make_image_is_the_one_that_the_manifests_name(place: Place) -> None:
    (name,) = set(
        re.findall(r"^ +(?:- )?image: (\S+)$", (ROOT / "manifests" / "install.yaml").read_text(), re.MULTILINE)
    )
    on = container(image=name, command=["sleep", "infinity"])
    assert place.create(pod(None, on | {"imagePullPolicy": "Never"})).ok
    (status,) = eventually(lambda: place.get("model")["status"].get("containerStatuses"), what="the kubelet tried")
    while status["state"].get("waiting", {}).get("reason") == "ContainerCreating":
        (status,) = place.get("model")["status"]["containerStatuses"]
    assert "running" in status["state"], status["state"]
