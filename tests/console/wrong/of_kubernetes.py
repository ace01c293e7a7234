"""Clusters in which a check of Kubernetes itself fails, or has nothing to judge."""

from typing import Any

import msgspec

from console.doctor.installation import Installation
from console.dra_objects import DeviceClass, DeviceClassSpec, ResourceSlice
from console.words import Shown
from policies.node_state import NodeState
from tests.console.installations import Wrong, dra, installation, nodes, parsed, policies, seen
from tests.console.objects import gpu, state


def of_nvidia(*devices: dict[str, str]) -> ResourceSlice:
    """What NVIDIA's DRA driver publishes of gpu-0, by the attributes of each device; one GPU if none is given."""
    said = [{key: {"string": text} for key, text in one.items()} for one in devices or ({"type": "gpu"},)]
    listed = [{"name": f"gpu-{number}", "attributes": one} for number, one in enumerate(said)]
    spec = {"driver": "gpu.nvidia.com", "nodeName": "gpu-0", "devices": listed}
    made: ResourceSlice = parsed({"spec": spec}, ResourceSlice)
    return made


def without_resources() -> tuple[DeviceClass, ...]:
    """The classes of the sizes as an API server keeps them for which they have no extended resource."""
    return tuple(msgspec.structs.replace(one, spec=DeviceClassSpec()) for one in dra()["classes"])


def with_kubelet(version: str, said: NodeState | None = None, **changes: Any) -> Installation:
    """An installation whose node has a kubelet of this version, and says something, or nothing."""
    info = {"containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": version}
    return installation(seen(**nodes(said, nodeInfo=info)), **changes)


WRONG: list[Wrong] = [
    ("kubernetes-version", "failure", "1.29.4, 1.30 is needed", lambda: installation(version=Shown("v1.29.4"))),
    (
        "kubernetes-version",
        "failure",
        "the kubelet of gpu-0 is v1.29.4, and gpu-share needs 1.30",
        lambda: with_kubelet("v1.29.4", state(gpu(), on="gpu-0")),
    ),
    (
        "kubernetes-version",
        "failure",
        "the kubelet of gpu-0 is v1.35.9, and allocation: dra is used there, which needs 1.36",
        lambda: with_kubelet("v1.35.9", state(gpu(allocation="dra"), on="gpu-0"), **dra()),
    ),
    (
        "kubernetes-version",
        "unknown",
        "nobody knows whether allocation: dra is used on gpu-0, whose kubelet is v1.35.9",
        lambda: with_kubelet("v1.35.9", **dra()),
    ),
    ("apis", "failure", "does not serve admissionreg", lambda: installation(apis=frozenset({"resource.k8s.io/v1"}))),
    (
        "apis",
        "failure",
        "needs Kubernetes 1.36",
        lambda: installation(version=Shown("v1.35.0"), **policies(x="allocation: dra\n")),
    ),
    ("nodes-labelled", "warning", "no node has the label", lambda: installation(seen(nodes=()))),
    (
        "other-plugins",
        "warning",
        "gpu-0 advertises nvidia.com/gpu too",
        lambda: installation(seen(**nodes(state(gpu(), on="gpu-0"), allocatable={"nvidia.com/gpu": "2"}))),
    ),
    (
        "other-plugins",
        "warning",
        "gpu-0 has devices of the DRA driver gpu.nvidia.com too",
        lambda: installation(slices=(of_nvidia(),)),
    ),
    ("feature-gates", "not-applicable", "nothing is allocated by DRA", installation),
    (
        "feature-gates",
        "failure",
        "the feature gate DRAPartitionableDevices is disabled",
        lambda: installation(**dra(), gates={"DRAExtendedResource": True, "DRAPartitionableDevices": False}),
    ),
    (
        "feature-gates",
        "failure",
        "dropped sharedCounters from ResourceSlices",
        lambda: installation(**dra(sharedCounters=[])),
    ),
    (
        "feature-gates",
        "failure",
        "dropped extendedResourceName from DeviceClasses",
        lambda: installation(**{**dra(), "classes": without_resources()}),
    ),
    ("feature-gates", "unknown", "does not say which feature gates", lambda: installation(**dra())),
]
