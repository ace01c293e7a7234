"""What container runtimes make of CDI devices, and of paths of the node, in pods with a share."""

import json
from collections.abc import Iterator

import pytest

from tests.bypass.attempt import ANNOTATIONS, LISTED
from tests.cluster.attempts import RULES
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import Installation
from tests.cluster.node import Node
from tests.cluster.pods import Place, container, pod
from tests.plugin.shares.test_nvidia_specification import SIMULATED

SPECIFICATION = "/host/run/cdi/nvidia-test.json"
STATUS = "kubectl -n gpu-share exec daemonset/gpu-share-plugin -c plugin -- gpu-share plugin status"
SLY = {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100", "GPU_SHARE_FRACTION": "1"}
EDITS = {"env": ["BROUGHT_BY=nvidia", *(f"{name}={value}" for name, value in SLY.items())]}


def says(cluster: Cluster, text: str) -> bool:
    return text in cluster.attempt(STATUS).stdout


@pytest.fixture
def with_nvidia(installed: Installation, cluster: Cluster, node: Node) -> Iterator[Installation]:
    """Give each simulated GPU a device of NVIDIA's, which sets all that it should not."""
    devices = [{"name": gpu.uuid, "containerEdits": EDITS} for gpu in SIMULATED]
    text = json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices})
    node.run(f"cat >{SPECIFICATION} <<'END'\n{text}\nEND\n")
    eventually(lambda: says(cluster, "with NVIDIA's own CDI device of each GPU"), what="the plugin finds the devices")
    yield installed
    node.run(f"rm -f {SPECIFICATION}")
    eventually(lambda: says(cluster, "no CDI device nvidia.com/gpu for any GPU"), what="the plugin misses them")


def test_nvidias_device_brings_its_part_and_the_limits_are_ours(with_nvidia: Installation, place: Place) -> None:
    place.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sly"}, "data": SLY})
    place.started(pod("0.2", container(envFrom=[{"configMapRef": {"name": "sly"}}])))
    found = place.report("model").environment
    assert found["BROUGHT_BY"] == "nvidia"
    assert found["NVIDIA_VISIBLE_DEVICES"] == "void"  # the device is there, so NVIDIA's runtime has nothing to do
    assert found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "20"
    assert (found["GPU_SHARE_FRACTION"], found["GPU_SHARE_MEMORY_MIB"]) == ("0.2", "28728")
    assert with_nvidia.overlay


def test_without_one_ours_brings_all_there_is(place: Place) -> None:
    place.started(pod("0.2"))
    found = place.report("model").environment
    assert "BROUGHT_BY" not in found
    assert found["NVIDIA_VISIBLE_DEVICES"] in {gpu.uuid for gpu in SIMULATED}


@pytest.fixture
def listing(installed: Installation, node: Node) -> Iterator[Place]:
    """Give a namespace whose policy lists paths of the node, which are there."""
    node.run(
        "mkdir -p /host/data/models /host/scratch && chmod 1777 /host/scratch && echo weights >/host/data/models/a"
    )
    place = Place.make(installed.cluster, RULES[LISTED], annotations=ANNOTATIONS)
    yield place
    place.empty()
    node.run("rm -rf /host/data/models /host/scratch; rmdir /host/data 2>/dev/null || true")


def test_listed_paths_are_mounted_as_the_policy_says(listing: Place, node: Node) -> None:
    mounts = [
        {"name": "models", "mountPath": "/models", "readOnly": True},
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    volumes = [
        {"name": "models", "hostPath": {"path": "/data/models", "type": "Directory"}},
        {"name": "scratch", "hostPath": {"path": "/scratch"}},
    ]
    script = (
        "cat /models/a >/scratch/read; (ln -s / /models/x && echo planted || echo kept) >/scratch/x 2>&1; sleep 600"
    )
    writes = container(command=["sh", "-c", script], volumeMounts=mounts)
    made = listing.started(pod("0.2", writes, volumes=volumes))
    assert made["spec"]["containers"][0]["volumeMounts"][0]["recursiveReadOnly"] == "IfPossible"
    eventually(
        lambda: node.run("cat /host/scratch/x 2>/dev/null || true").endswith("kept\n"), what="no link is planted"
    )
    assert node.run("cat /host/scratch/read") == "weights\n"


def test_a_path_that_only_the_policy_lists_is_denied_by_the_api_server(installed: Installation) -> None:
    mounts = [{"name": "models", "mountPath": "/models", "readOnly": True}]
    volumes = [{"name": "models", "hostPath": {"path": "/data/models"}}]
    on = pod("0.2", container(volumeMounts=mounts), volumes=volumes)
    place = Place.make(installed.cluster, RULES[LISTED])
    path = f"/api/v1/namespaces/{place.name}"
    place.cluster.api.ask("PATCH", path, [{"op": "remove", "path": "/metadata/annotations/gpu-share.dev~1host-paths"}])
    denied = eventually(lambda: _denied(place, on), what="the API server denies it")
    assert "gpu-share.dev/host-paths" in denied
    added = {"op": "add", "path": "/metadata/annotations", "value": ANNOTATIONS}
    place.cluster.api.ask("PATCH", path, [added])
    eventually(lambda: place.create(on, dry_run=True).ok, what="it is admitted with the annotation")


def _denied(place: Place, on: dict[str, object]) -> str:
    answer = place.create(on, dry_run=True)
    return "" if answer.ok else answer.message
