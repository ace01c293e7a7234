"""Every overlay installs, and one takes the place of another."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import AWS, AWS_VGPU, ENVVAR, SIMULATED, VGPU, Installation
from tests.cluster.pods import Place, container, pod
from tests.cluster.test_kinds import has_a_share

PLAIN = "manifests"
OVERLAYS = [PLAIN, *(f"manifests/overlays/{name}" for name in ("envvar", "aws-resource", "simulated"))]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_api_server_takes_every_object_of_an_overlay_without_a_warning(
    installed: Installation, cluster: Cluster, overlay: str
) -> None:
    ran = cluster.attempt(f"kubectl apply --dry-run=server -k {overlay}", cwd=installed.tree)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.fixture
def plain(installed: Installation) -> Iterator[Installation]:
    """Install for nodes with GPUs, where there are none; take away afterwards what the simulated overlay has not."""
    installed.apply(PLAIN)
    yield installed
    installed.run("kubectl -n gpu-share delete daemonset,serviceaccount,networkpolicy gpu-share-mps")
    installed.use(SIMULATED)


def test_without_gpus_webhooks_serve_pods_wait_and_the_plugin_says_what_is_missing(
    plain: Installation, cluster: Cluster
) -> None:
    plain.run("kubectl -n gpu-share rollout status deployment/gpu-share-webhook")
    logs = "kubectl -n gpu-share logs -l app.kubernetes.io/component=plugin --tail=5"
    eventually(lambda: "NVML" in cluster.attempt(logs).stdout, what="the plugin names NVML")
    eventually(
        lambda: {plain.allocatable(node)[VGPU] for node in plain.nodes()} == {"0"}, what="the simulated GPUs are gone"
    )
    place = Place.make(cluster, "waiting")
    made = place.create(pod("0.2"))
    assert made.ok, made.message
    waiting = eventually(lambda: place.events("FailedScheduling", "Pod"), seconds=30, what="the pod waits")
    assert any(f"Insufficient {VGPU}" in one for one in waiting)
    place.remove()


SLY = {
    "NVIDIA_VISIBLE_DEVICES": "all",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "",
}


def test_by_cdi_a_share_beats_the_variables_of_a_config_map(first: Installation, cluster: Cluster) -> None:
    first.use(SIMULATED)
    place = Place.make(cluster, "by-cdi")
    place.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sly"}, "data": SLY})
    place.started(pod("0.2", container(envFrom=[{"configMapRef": {"name": "sly"}}])))
    has_a_share(place.report("model"), percent=20, mib=28728)
    place.remove()


def test_by_variables_a_config_map_as_a_whole_is_denied(first: Installation, cluster: Cluster) -> None:
    first.use(ENVVAR)
    place = Place.make(cluster, "by-variables")
    place.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sly"}, "data": SLY})
    sly = pod("0.2", container(envFrom=[{"configMapRef": {"name": "sly"}}]))
    eventually(lambda: place.create(sly, dry_run=True).reason == "ReservedEnvironment", what="envFrom is denied")
    place.started(pod("0.2"))
    has_a_share(place.report("model"), percent=20, mib=28728)
    place.remove()


def test_a_pod_of_the_aws_plugin_has_its_share(first: Installation, cluster: Cluster) -> None:
    first.use(AWS, AWS_VGPU)
    place = Place.make(cluster, "of-aws")
    limited = container(resources={"limits": {AWS_VGPU: "2"}})
    limited["volumeMounts"] = [{"name": "nvidia-mps", "mountPath": "/tmp/nvidia-mps"}]
    volumes = [{"name": "nvidia-mps", "hostPath": {"path": "/tmp/nvidia-mps"}}]
    asked = pod(None, limited, hostIPC=True, volumes=volumes)
    # A webhook of the overlay before may answer a last call while it ends.
    eventually(lambda: place.create(asked, dry_run=True).ok, what="the share is granted")
    made = place.started(asked)
    assert json.loads(made["metadata"]["annotations"]["gpu-share.dev/grant"])["resource"] == AWS_VGPU
    has_a_share(place.report("model"), percent=20, mib=28728)
    place.remove()


def test_another_overlay_in_its_place_leaves_no_plugin_with_the_old_resource(first: Installation) -> None:
    first.use(AWS, AWS_VGPU)
    first.apply(SIMULATED)
    # The plugin ends by itself, and the kubelet waits longer each time before it starts a container again.
    first.wait_until_ready(seconds=120)
