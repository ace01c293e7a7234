"""Objects of a cluster with shares, as its API server and its nodes give them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from policies.node_state import VERSION, Ages, Fault, Gpu, MpsDaemon, NodeState, Tenant, Toolkit, Use, write
from tests.console.stand_in import Object, StandIn

GIB = 1024**3
PROGRAM = version("gpu-share")


_began: datetime | None = None


@contextmanager
def at_one_moment() -> Iterator[None]:
    """Have all objects made as of now: their order goes by their time, and a second can end between two of them."""
    global _began  # noqa: PLW0603 - what a test makes with `ago`, in whatever function
    _began = datetime.now(UTC)
    try:
        yield
    finally:
        _began = None


def ago(**passed: float) -> str:
    return ((_began or datetime.now(UTC)) - timedelta(**passed)).isoformat(timespec="seconds")


def node(name: str = "gpu-a", *, labelled: bool = True, **status: Any) -> Object:
    labels = {"gpu-share.dev/node": "true"} if labelled else {}
    conditions = [{"type": "Ready", "status": "True"}]
    vgpus = {"gpu-share.dev/vgpu": "20"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": vgpus,
            "allocatable": vgpus,
            "conditions": conditions,
            "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"},
            **status,
        },
    }


def taint(key: str, effect: str = "NoSchedule") -> Object:
    return {"key": key, "effect": effect}


def closed(why: str, name: str = "gpu-b") -> Object:
    """A node that is cordoned, not Ready or short of something, as Kubernetes has it then."""
    if why == "cordoned":
        spec = {"unschedulable": True, "taints": [taint("node.kubernetes.io/unschedulable")]}
        return {**node(name), "spec": spec}
    if why == "not Ready":
        ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "it stopped."}
        keys = [taint("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")]
        return {**node(name, conditions=[ready]), "spec": {"taints": keys}}
    return {**node(name), "spec": {"taints": [taint(f"node.kubernetes.io/{why}")]}}


def read_by(*names: str) -> Object:
    """The volume of the policies, from the ConfigMaps of these *names*."""
    return {"name": "policies", "projected": {"sources": [{"configMap": {"name": name}} for name in names]}}


def part(on: str = "gpu-a", component: str = "plugin", *, port: int = 9407) -> Object:
    """A pod of gpu-share on a node."""
    name = f"gpu-share-{component}-{on}"
    reads = component != "certs"
    mounts = [{"name": "policies", "mountPath": "/etc/gpu-share/policies"}] if reads else []
    container = {"name": component, "ports": [{"name": "state", "containerPort": port}], "volumeMounts": mounts}
    return {
        "metadata": {
            "name": name,
            "namespace": "gpu-share",
            "uid": f"uid-of-{name}",
            "labels": {"app.kubernetes.io/name": "gpu-share", "app.kubernetes.io/component": component},
        },
        "spec": {
            "nodeName": on,
            "containers": [container],
            "volumes": [read_by("gpu-share-policies", "gpu-share-cluster")] if reads else [],
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": component, "ready": True}]},
    }


def pod(name: str, share: str = "0.2", *, namespace: str = "team-vision", on: str = "gpu-a", **status: Any) -> Object:
    """A pod with a share."""
    grant = {
        "policy": namespace,
        "strategy": "mps",
        "attach": "pod",
        "resource": "gpu-share.dev/vgpu",
        "containers": {"main": {"vgpus": round(float(share) * 10), "share": share, "of": 10}},
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "creationTimestamp": ago(minutes=5),
            "labels": {"gpu-share.dev/shared": "true"},
            "annotations": {"gpu-share": share, "gpu-share.dev/grant": json.dumps(grant)},
        },
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "busybox:1.37"}]},
        "status": {"phase": "Running", **status},
    }


def pending(name: str, share: str, why: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    return pod(name, share, on="", phase="Pending", conditions=[condition])


def denial(message: str, *, kind: str = "ReplicaSet", name: str = "resnet-5d", at: str = "") -> Object:
    return {
        "metadata": {"name": f"{name}.1", "namespace": "team-vision"},
        "involvedObject": {"kind": kind, "namespace": "team-vision", "name": name},
        "reason": "FailedCreate",
        "message": f"Error creating: {message}",
        "count": 9,
        "lastTimestamp": at or ago(minutes=1),
    }


def tenant(pod: str, parts: int, *, use: Use | None = None, namespace: str = "team-vision", **more: Any) -> Tenant:
    limit = parts * 14 * GIB
    return Tenant(
        namespace=namespace, pod=pod, container="main", parts=parts, memory_limit_bytes=limit, use=use, **more
    )


def gpu(*tenants: Tenant, index: int = 0, parts: int = 10, hidden: int = 0, **more: Any) -> Gpu:
    granted = sum(one.parts for one in tenants)
    free = 0 if more.get("healthy") is False else parts - granted - hidden
    values: dict[str, Any] = {
        "uuid": f"GPU-{index}",
        "index": index,
        "model": "NVIDIA H200",
        "resource": "gpu-share.dev/vgpu",
        "strategy": "mps",
        "allocation": "device-plugin",
        "healthy": True,
        "memory_bytes": 140 * GIB,
        "limits_enforced_by": "mps",
        "mps_daemon": MpsDaemon(state="ready", since="2026-01-01T00:00:00Z"),
        "compute_mode": "exclusive-process",
        "parts": parts,
        "granted": granted,
        "hidden": hidden,
        "free": free,
        "largest_free": free,
        "tenants": tenants,
        "outsiders": (),
    }
    return Gpu(**{**values, **more})


def failed_gpu(*tenants: Tenant, index: int = 1) -> Gpu:
    fault = Fault(source="xid", why="the driver reported XID 79", since=ago(minutes=3), comes_back="by a reset")
    return gpu(*tenants, index=index, healthy=False, faults=(fault,))


def state(*gpus: Gpu, on: str = "gpu-a", **more: Any) -> NodeState:
    values: dict[str, Any] = {
        "driver": "580.65",
        "ages": Ages(health=1.0, tenants=2.0, use=5.0),
        "toolkit": Toolkit(accepts_variable=True, variable_needed=True),
    }
    return NodeState(version=VERSION, part="plugin", program=PROGRAM, node=on, gpus=gpus, **{**values, **more})


def cluster(*states: NodeState, pods: tuple[Object, ...] = (), events: tuple[Object, ...] = ()) -> StandIn:
    """A cluster in which each node of *states* has a part that says it."""
    known = StandIn()
    known.lists["/api/v1/nodes"] = [node(one.node) for one in states]
    known.lists["/api/v1/namespaces/gpu-share/pods"] = [part(one.node) for one in states]
    known.lists["/api/v1/pods"] = list(pods)
    known.lists["/api/v1/events"] = list(events)
    for one in states:
        tell(known, one)
    return known


def tell(known: StandIn, said: NodeState, *, component: str = "plugin") -> None:
    """Have a part of a node say *said*."""
    name = f"gpu-share-{component}-{said.node}"
    known.states[f"{name}:9407"] = lambda: (200, write(said))
    known.uids[f"{name}:9407"] = f"uid-of-{name}"


def toolkit(tag: str, name: str = "toolkit", *, phase: str = "Running", ready: bool = True) -> Object:
    """A pod by which NVIDIA's GPU Operator installs its container toolkit on gpu-a."""
    owner = {"kind": "DaemonSet", "name": "nvidia-container-toolkit-daemonset", "controller": True}
    labels = {"app": "nvidia-container-toolkit-daemonset"}
    image = f"nvcr.io/nvidia/k8s/container-toolkit:{tag}"
    return {
        "metadata": {"name": name, "namespace": "gpu-operator", "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "gpu-a", "containers": [{"name": "toolkit", "image": image}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "toolkit", "ready": ready}]},
    }
