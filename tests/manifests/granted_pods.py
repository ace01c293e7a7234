"""Pods as the webhook grants them, for the policy to validate."""

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache

from policies import contract
from policies.grant import Grant
from policies.policy_set import PolicySet
from policies.reading.store import load
from tests.manifests.admission import stored
from tests.manifests.render import ROOT, Object
from tests.policies.pods import GPU, container, decided, limited, mutated, pod, policies
from webhook.preview.workloads import read_input

SHIPPED = load(ROOT / "policies" / "files")
_HEADROOM = "memory: {headroom: '0.02'}"
NODE = policies("mps: {attach: node}")
SLICED = policies("strategy: time-slicing")
GPUS = policies("share: {whole: gpus, maximum: '8', podMaximum: '8'}")
DRA = policies("allocation: dra\nshare: {maximum: '8', podMaximum: '8', whole: gpus}")
DRA_SLICED = policies("allocation: dra\nstrategy: time-slicing")
PARTITIONS = """
partitions:
  h100:
  - {share: "0.125", resource: nvidia.com/mig-1g.10gb}
  - {share: "0.25", resource: nvidia.com/mig-2g.20gb}
  - {share: "1", resource: nvidia.com/gpu}
  mi300x: [{share: "0.125", resource: amd.com/cpx_nps4}, {share: "1", resource: amd.com/gpu}]
  gaudi: [{share: "1", resource: habana.ai/gaudi}]
"""
INSTANCES = policies("devices: [mig-1g.10gb, mig-1g.10gb+me]", "vgpusPerInstance: {1g.10gb: 6}")
_NODES = "nodes: [{device: t4, vgpusPerGpu: 4}, {device: l4}]"
DEVICES = policies("devices: [t4, l4]", _NODES)
DEVICES_SLICED = policies("devices: [t4, l4]\nstrategy: time-slicing\nshare: {whole: gpus, maximum: '2'}", _NODES)
DEVICES_BY_DRA = policies("allocation: dra\ndevices: [t4]", _NODES)
INSTANCES_BY_DRA = policies("allocation: dra\ndevices: [mig-1g.10gb]\nshare: {whole: gpus}")
MIG, AMD, GAUDI = (
    policies(f"strategy: partition\npartition: {name}\nshare: {{maximum: '8', podMaximum: '8'}}", PARTITIONS)
    for name in ("h100", "mi300x", "gaudi")
)
MANY = policies("strategy: time-slicing\nshare: {maximum: '16', podMaximum: '16'}", "vgpusPerGpu: 100")


def examples() -> Iterator[tuple[str, Object, PolicySet, str]]:
    for path in sorted((ROOT / "policies" / "examples").glob("*.yaml")):
        for workload in read_input(path.read_text(), path.name).workloads:
            yield path.stem, workload.pod, SHIPPED, workload.namespace or "default"


WRITTEN: dict[str, tuple[Object, PolicySet]] = {
    "one": (pod("0.2"), policies()),
    "one, attached by the node": (pod("0.2"), NODE),
    "one, in turns": (pod("0.2"), SLICED),
    "limit alone": (pod(None, limited(quantity=2)), policies()),
    "annotation and limit": (pod("0.2", limited(quantity="2")), policies()),
    "whole": (pod("100%"), policies()),
    "several GPUs": (pod("2"), MANY),
    "ten GPUs of a hundred vGPUs": (pod("10"), MANY),
    "sixteen GPUs of a hundred vGPUs": (pod("16"), MANY),
    "a whole GPU": (pod("1"), GPUS),
    "several whole GPUs by limit": (pod(None, limited(quantity=3, resource=GPU)), GPUS),
    "whole GPUs by annotation and limit": (pod("1", limited("a", 1, GPU), limited("b", 2, GPU), container("c")), GPUS),
    "all vGPUs of one where there are whole ones": (pod("1", limited(quantity=10)), GPUS),
    "one by DRA": (pod("0.2"), DRA),
    "one by DRA, in turns": (pod("0.2"), DRA_SLICED),
    "whole GPUs by DRA": (pod("3"), DRA),
    "a limit of vGPUs by DRA": (pod(None, limited(quantity=2)), DRA),
    "two sizes by DRA": (pod("0.2", container("a"), limited("b", 3), initContainers=[container("i")]), DRA),
    "a part of a MIG instance": (pod("0.5", container("a"), container("b")), INSTANCES),
    "a part of one with a media engine": (
        pod("0.5", annotations={"gpu-share.dev/device": "mig-1g.10gb+me"}),
        INSTANCES,
    ),
    "two parts of MIG instances by limit": (
        pod(None, limited("a", 2, "gpu-share.dev/vgpu-mig-1g.10gb"), limited("b", 1, "gpu-share.dev/vgpu-mig-1g.10gb")),
        INSTANCES,
    ),
    "a part of a MIG instance by DRA": (pod("0.5"), INSTANCES_BY_DRA),
    "a whole MIG instance by DRA": (pod("1"), INSTANCES_BY_DRA),
    "a part of a device": (pod("0.2", container("a"), container("b")), DEVICES),
    "parts of a device by limit": (
        pod(None, limited("a", 2, "gpu-share.dev/vgpu-model-t4"), limited("b", 1, "gpu-share.dev/vgpu-model-t4")),
        DEVICES,
    ),
    "a part of a device, in turns": (pod("0.5", annotations={"gpu-share.dev/device": "l4"}), DEVICES_SLICED),
    "whole GPUs of a device": (pod("2", annotations={"gpu-share.dev/device": "l4"}), DEVICES_SLICED),
    "a part of a device by DRA": (pod("0.2"), DEVICES_BY_DRA),
    "a MIG instance": (pod("0.2", container("a"), container("b")), MIG),
    "two MIG instances": (
        pod("0.1", container("a"), container("b"), annotations={"container.gpu-share.dev/b": "0.25"}),
        MIG,
    ),
    "two devices of NVIDIA": (pod("2", limited(quantity=2, resource="nvidia.com/gpu")), MIG),
    "a partition of AMD": (pod("10%", container("a"), container("b", env=[{"name": "A", "value": "b"}])), AMD),
    "eight devices of AMD": (pod("8", initContainers=[container("i")]), AMD),
    "a Gaudi": (pod("0.5", container("a"), container("b")), GAUDI),
    "two containers": (pod("0.2", container("a"), container("b")), policies()),
    "two shares": (pod("0.2", container("a"), container("b"), annotations={"container.gpu-share.dev/b": "0.3"}), NODE),
    "names that begin alike": (pod("0.2", container("b"), limited("a-b", 3)), NODE),
    "told less": (pod("0.2", container("a"), container("b")), policies(_HEADROOM)),
    "told less by DRA": (pod("0.2"), policies(f"allocation: dra\n{_HEADROOM}")),
    "told more": (pod("0.25"), policies("memory: {basis: granted}")),
    "init container": (pod("0.2", initContainers=[container("i")]), policies()),
    "sharing init container": (pod(None, initContainers=[limited("i")]), policies()),
    "sharing sidecar": (pod("0.1", initContainers=[limited("i", restartPolicy="Always")]), NODE),
    "pod of an AWS user": (
        pod(
            None,
            limited(volumeMounts=[{"name": "nvidia-mps", "mountPath": "/tmp/nvidia-mps"}]),
            hostIPC=True,
            volumes=[{"name": "nvidia-mps", "hostPath": {"path": "/tmp/nvidia-mps"}}],
        ),
        policies(),
    ),
    "zero beside": (pod("0.2", container(), limited("b", 0), limited("c", 0, resource="nvidia.com/gpu")), policies()),
    "other volumes": (
        pod(
            "0.2",
            container(volumeMounts=[{"name": "d", "mountPath": "/tmp"}]),
            volumes=[{"name": "d", "emptyDir": {}}],
        ),
        policies(),
    ),
}


@cache
def granted() -> dict[str, Object]:
    """Return the pods as the webhook has patched them, by name."""
    made = {name: stored(mutated(on, by)) for name, (on, by) in WRITTEN.items()}
    made |= {
        name: stored(mutated(on, by, namespace))
        for name, on, by, namespace in examples()
        if isinstance(decided(on, by, namespace), Grant)
    }
    assert len(made) == len(WRITTEN) + 4
    return made


def one(name: str) -> Object:
    return deepcopy(granted()[name])


GRANTED = list(granted())


def first_sharing(on: Object) -> Object:
    grant = json.loads(grant_of(on))
    name = next(iter(grant["containers"]))
    found: Object = next(c for c in containers(on) if c["name"] == name)
    return found


def containers(on: Object) -> list[Object]:
    return [*on["spec"].get("initContainers", []), *on["spec"]["containers"]]


def grant_of(on: Object) -> str:
    text: str = on["metadata"]["annotations"][contract.GRANT_ANNOTATION]
    return text
