"""A cluster that is locked down: no pod gets to a GPU but by a share, and shares work as before."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.bypass.corpus_lockdown import CLAIMS_TO_GPUS, OTHER_CLAIMS, in_version, template, to_a_gpu, without_a_gpu
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import LOCKED, Installation
from tests.cluster.pods import Place, pod
from tests.cluster.test_attempts import is_no_pod

BY = "ValidatingAdmissionPolicy 'gpu-share-lockdown'"
RUNTIMES = ("nvidia", "nvidia-cdi", "kata-qemu-nvidia-gpu", "runc")
ATTEMPTS = list(to_a_gpu())
GROUP = "/apis/resource.k8s.io"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
KINDS = {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"}


@pytest.fixture(scope="module")
def locked(first: Installation, cluster: Cluster) -> Iterator[Place]:
    """Give a namespace of a cluster with the component."""
    first.use(LOCKED)
    for name in RUNTIMES:
        runtime = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": "runc",
        }
        cluster.api.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime)
    place = Place.make(cluster, "locked-down")
    eventually(lambda: BY in place.create(ATTEMPTS[0][2], dry_run=True).message, what="the policy is in force")
    yield place
    place.remove()
    for name in RUNTIMES:
        cluster.api.ask("DELETE", f"/apis/node.k8s.io/v1/runtimeclasses/{name}")
    for file in ("pods", "claims"):
        first.run(f"kubectl delete -f manifests/components/lockdown/{file}.yaml")


@pytest.mark.parametrize(("says", "on"), [made[1:] for made in ATTEMPTS], ids=[made[0] for made in ATTEMPTS])
def test_a_pod_without_a_share_that_names_gpus_is_denied(locked: Place, says: str, on: dict[str, Any]) -> None:
    answer = locked.create(on, dry_run=True)
    assert not answer.ok
    if not is_no_pod(answer):
        assert BY in answer.message
        assert says in answer.message


@pytest.mark.parametrize(("name", "on"), list(without_a_gpu()))
def test_every_other_pod_is_admitted(locked: Place, name: str, on: dict[str, Any]) -> None:
    answer = locked.create(on, dry_run=True)
    assert answer.ok, f"{name}: {answer.message}"


def test_a_pod_with_a_share_runs(locked: Place) -> None:
    locked.started(pod("0.2", runtimeClassName="nvidia"))
    changed = locked.cluster.api.ask(
        "PATCH", f"{locked.path}/model", {"metadata": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}}
    )
    assert BY in changed.message or "gpu-share-changes" in changed.message


def test_no_annotation_for_devices_is_added_to_any_pod(locked: Place) -> None:
    assert locked.create(pod(None, name="plain")).ok
    added = {"metadata": {"annotations": {"devices.noderesource.dev/pod": "- path: /dev/nvidia0"}}}
    for path in ("plain", "plain/status"):
        assert BY in locked.cluster.api.ask("PATCH", f"{locked.path}/{path}", added).message


def test_the_parts_of_gpu_share_can_be_replaced(locked: Place, first: Installation) -> None:
    first.run("kubectl -n gpu-share rollout restart daemonset/gpu-share-plugin")
    first.wait_until_ready()
    assert locked.name


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize("name", [*CLAIMS_TO_GPUS, *OTHER_CLAIMS])
def test_claims_of_gpus_are_denied(locked: Place, name: str, version: str) -> None:
    if not locked.cluster.api.ask("GET", f"{GROUP}/{version}").ok:
        pytest.skip(f"this cluster does not serve {version}")
    claim = in_version(version, (CLAIMS_TO_GPUS | OTHER_CLAIMS)[name])
    for on in (claim, template(claim)):
        path = f"{GROUP}/{version}/namespaces/{locked.name}/{KINDS[on['kind']]}?dryRun=All"
        answer = locked.cluster.api.ask("POST", path, on)
        assert answer.ok is (name in OTHER_CLAIMS), answer.message
        assert answer.ok or "gpu-share-lockdown-claims" in answer.message


@pytest.mark.parametrize("name", ["gpu-share-lockdown", "gpu-share-lockdown-claims"])
def test_the_policies_have_no_type_warnings(locked: Place, name: str) -> None:
    api = locked.cluster.api
    status = eventually(lambda: api.get(f"{POLICIES}/{name}").get("status"), what="type checking")
    assert status["typeChecking"] == {}
