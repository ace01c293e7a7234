"""Two models of simulated GPUs on one node, each divided by a number of its own: by the device plugin, and by DRA."""

from collections.abc import Iterator

import pytest
import yaml

from plugin.simulated.gpus import simulated_gpus
from policies.sizes import devices_per_gpu
from tests.cluster.cluster import eventually
from tests.cluster.devices import by_dra, need_dra, put_back, share
from tests.cluster.installation import SIMULATED, VGPU, Installation
from tests.cluster.pods import Place, pod

H200, T4 = simulated_gpus("2xH200")  # whose directories are there; the second one is a T4 in these tests
OF_T4 = f"{VGPU}-model-t4"
DEVICE = {"gpu-share.dev/device": "t4"}
NODES = [{"model": "*T4*", "device": "t4", "vgpusPerGpu": 4}]
POLICIES = {"models": "devices: [gpu, t4]\n", "models-by-dra": "devices: [gpu, t4]\nallocation: dra\n"}
OVERLAY = "manifests/overlays/models-on-simulated-gpus"
BY_DRA = f"{OVERLAY}-by-dra"
GPUS = [{"model": "H200", "uuid": H200.uuid}, {"model": "T4", "uuid": T4.uuid}]
PLACED = "/etc/gpu-share/simulated"
CONTAINER = "/spec/template/spec/containers/0"
CONFIG_MAP = "simulated-gpus"
NODE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": CONFIG_MAP, "namespace": "gpu-share"},
    "data": {"gpus.yaml": yaml.safe_dump({"gpus": GPUS})},
}


def write_overlay(installation: Installation, overlay: str, of: str) -> None:
    """Have the plugin of an overlay simulate the two models."""
    (written, *_) = yaml.safe_load((installation.tree / SIMULATED / "gpus" / "plugin.yaml").read_text())
    position = [one["name"] for one in written["value"]].index("GPU_SHARE_SIMULATE")
    volume = {"name": "simulated", "configMap": {"name": CONFIG_MAP}}
    patch = [
        {"op": "replace", "path": f"{CONTAINER}/env/{position}/value", "value": f"{PLACED}/gpus.yaml"},
        {"op": "add", "path": f"{CONTAINER}/volumeMounts/-", "value": {"name": "simulated", "mountPath": PLACED}},
        {"op": "add", "path": "/spec/template/spec/volumes/-", "value": volume},
    ]
    kustomization = {
        "resources": [of, "gpus.yaml"],
        "patches": [{"target": {"kind": "DaemonSet", "name": "gpu-share-plugin"}, "path": "plugin.yaml"}],
    }
    directory = installation.tree / overlay
    directory.mkdir(exist_ok=True)
    for name, content in (("gpus", NODE), ("plugin", patch), ("kustomization", kustomization)):
        (directory / f"{name}.yaml").write_text(yaml.safe_dump(content))


@pytest.fixture(scope="module")
def models(first: Installation) -> Iterator[Installation]:
    write_overlay(first, OVERLAY, "../simulated")
    write_overlay(first, BY_DRA, "../dra-simulated")
    with put_back(first, POLICIES) as installation:
        yield installation


@pytest.fixture
def team(models: Installation) -> Iterator[Place]:
    share(models, OVERLAY, NODES, POLICIES, asks=pod("0.2", annotations=DEVICE))
    made = Place.make(models.cluster, "models")
    yield made
    made.empty()


@pytest.fixture
def team_by_dra(models: Installation) -> Iterator[Place]:
    need_dra(models)
    share(models, BY_DRA, NODES, POLICIES, asks=pod("0.2", annotations=DEVICE))
    with by_dra(models, "models-by-dra", devices=devices_per_gpu(10) + devices_per_gpu(4)) as place:
        yield place


def fill(place: Place, *, resource_of_t4: str, resource: str, count: int) -> None:
    """Run a pod on each model and fill the T4: each gets its own part, and one more T4 waits."""
    place.started(pod("0.2", name="any"))
    for number in range(4):
        place.started(pod("0.2", name=f"quarter-{number}", annotations=DEVICE))
    on_any, on_t4 = place.report("any").environment, place.report("quarter-0").environment
    assert (on_any["NVIDIA_VISIBLE_DEVICES"], on_t4["NVIDIA_VISIBLE_DEVICES"]) == (H200.uuid, T4.uuid)
    threads = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
    assert (on_any[threads], on_t4[threads]) == ("20", "25")
    assert (on_any["GPU_SHARE_FRACTION"], on_t4["GPU_SHARE_FRACTION"]) == ("0.2", "0.25")
    limits = [place.get(name)["spec"]["containers"][0]["resources"]["limits"] for name in ("any", "quarter-0")]
    assert limits == [{resource: str(count)}, {resource_of_t4: "1"}]
    assert place.create(pod("0.2", name="late", annotations=DEVICE)).ok
    eventually(lambda: place.events("FailedScheduling", "Pod"), what="the scheduler finds no room for a fifth")
    assert place.get("late")["status"]["phase"] == "Pending"


def test_each_model_is_a_resource_with_its_own_number(models: Installation, team: Place) -> None:
    (node,) = models.nodes()
    eventually(
        lambda: [models.allocatable(node).get(name) for name in (VGPU, OF_T4)] == ["10", "4"],
        what="ten vGPUs of one model and four of the other",
    )
    fill(team, resource_of_t4=OF_T4, resource=VGPU, count=2)
    elsewhere = Place.make(models.cluster)
    denied = elsewhere.create(pod("0.2", annotations=DEVICE))
    assert (denied.ok, denied.reason) == (False, "DeviceNotAllowed")
    elsewhere.remove()


def test_by_dra_each_model_has_the_sizes_of_its_own_number(models: Installation, team_by_dra: Place) -> None:
    sizes = {(one["attributes"]["model"]["string"], one["attributes"]["size"]["string"]) for one in models.devices()}
    assert {size for model, size in sizes if "T4" in model} == {f"{milli}m-model-t4" for milli in (250, 500, 750, 1000)}
    fill(
        team_by_dra,
        resource_of_t4="gpu-share.dev/share-250m-model-t4",
        resource="gpu-share.dev/share-200m",
        count=1,
    )
