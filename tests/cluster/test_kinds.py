"""Every kind of workload gets its share, and finds it inside its containers."""

import re
from typing import Any

import pytest
import yaml

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.image import ROOT
from tests.cluster.installation import VGPU
from tests.cluster.pods import PYTORCH, SERVING, Place, Report, container, pod

SPEC = pod(None)["spec"]
LABELS = {"app": "model"}
SELECTOR = {"selector": {"matchLabels": LABELS}}
pytestmark = pytest.mark.usefixtures("installed")
UUID = r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
OF_THE_SHARE = ("CUDA_MPS", "GPU_SHARE_")


def template(**spec: Any) -> Object:
    return {"metadata": {"labels": LABELS, "annotations": {"gpu-share": "0.2"}}, "spec": SPEC | spec}


def workload(kind: str, group: str, **spec: Any) -> Object:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "model"}, "spec": spec}


JOB = {"template": template(restartPolicy="Never"), "backoffLimit": 0}
KINDS = [
    workload("Deployment", "apps/v1", **SELECTOR, template=template()),
    workload("StatefulSet", "apps/v1", **SELECTOR, serviceName="model", template=template()),
    workload("Job", "batch/v1", **JOB),
    workload("CronJob", "batch/v1", schedule="0 0 1 1 *", jobTemplate={"spec": JOB}),
]


def has_a_share(report: Report, *, percent: int, mib: int) -> None:
    """See that a container has one GPU, and what holds it to its part."""
    gpu = report.environment["NVIDIA_VISIBLE_DEVICES"]
    assert re.fullmatch(UUID, gpu)
    assert report.environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == str(percent)
    assert report.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"].endswith(f"={mib}M")
    assert report.environment["GPU_SHARE_MEMORY_MIB"] == str(mib)
    assert report.environment["CUDA_MPS_PIPE_DIRECTORY"] == f"/tmp/nvidia-mps/{gpu}"
    assert {"/dev/shm", f"/tmp/nvidia-mps/{gpu}"} <= set(report.mounts)
    assert report.mounts["/dev/shm"] != "shm"


def has_no_gpu(report: Report) -> None:
    """See that a container without a share finds no GPU, although its image asks for all."""
    assert report.environment["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert not [name for name in report.environment if name.startswith(OF_THE_SHARE)]
    assert not [path for path in report.mounts if path.startswith("/tmp/nvidia-mps")]


def limits_of(made: Object) -> dict[str, str]:
    every = [*made["spec"].get("initContainers", []), *made["spec"]["containers"]]
    return {one["name"]: one["resources"].get("limits", {}).get(VGPU, "0") for one in every}


@pytest.mark.parametrize("on", KINDS, ids=lambda one: str(one["kind"]))
def test_the_pod_of_a_workload_has_its_share(place: Place, on: Object) -> None:
    place.apply(on)
    if on["kind"] == "CronJob":
        place.cluster.run(f"kubectl -n {place.name} create job --from=cronjob/model model-now")
    made = place.one_running("app=model")
    assert limits_of(made) == {"main": "2"}
    assert made["spec"]["hostIPC"] is True
    has_a_share(place.report(made["metadata"]["name"]), percent=20, mib=28728)


def test_each_of_several_containers_has_what_it_asked_for(place: Place) -> None:
    sidecar = container("sidecar", PYTORCH, restartPolicy="Always")
    first = container("first", SERVING, args=["--once"])
    named = {"container.gpu-share.dev/sidecar": "0.1", "container.gpu-share.dev/first": "0.3"}
    share = pod("0.2", container(), container("beside"), annotations=named, initContainers=[first, sidecar])
    made = place.started(share)
    assert limits_of(made) == {"first": "3", "sidecar": "1", "main": "2", "beside": "0"}
    has_a_share(place.report("model", "first"), percent=30, mib=43092)
    has_a_share(place.report("model", "sidecar"), percent=10, mib=14364)
    has_a_share(place.report("model", "main"), percent=20, mib=28728)
    has_no_gpu(place.report("model", "beside"))


def test_the_shared_memory_of_a_share_is_writable_for_any_user(place: Place) -> None:
    place.started(pod("0.2", container(securityContext={"runAsUser": 65532, "runAsGroup": 65532})))
    report = place.report("model")
    assert report.uid == 65532
    assert "/dev/shm" in report.writable


# What a framework is told in each container with a share: the end of its arguments, and a variable.
EXAMPLES: dict[str, dict[str, tuple[list[str], dict[str, str]]]] = {
    "1-tensorflow-serving": {"server": (["--per_process_gpu_memory_fraction=0.18"], {})},
    "2-vllm": {"vllm": (["--gpu_memory_utilization", "0.48"], {})},
    "3-pytorch": {
        "worker": ([], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,per_process_memory_fraction:0.23"})
    },
    "4-two-containers": {
        "detector": (["--backend-config=tensorflow,gpu-memory-fraction=0.3"], {}),
        "tracker": (["--from-the-image"], {"CUPY_GPU_MEMORY_LIMIT": "10%"}),
    },
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_framework_of_an_example_is_told_its_part_of_the_memory(cluster: Cluster, example: str) -> None:
    (on,) = yaml.safe_load_all((ROOT / "policies" / "examples" / f"{example}.yaml").read_text())
    place = Place.make(cluster, on["metadata"].get("namespace", "default"))
    place.apply(on)
    made = place.one_running("gpu-share.dev/shared=true")
    assert {name for name, vgpus in limits_of(made).items() if vgpus != "0"} == EXAMPLES[example].keys()
    for name, (arguments, environment) in EXAMPLES[example].items():
        report = place.report(made["metadata"]["name"], name)
        assert report.arguments[-len(arguments) :] == arguments or not arguments
        assert environment.items() <= report.environment.items()
    place.empty()
