"""Clusters for the page: one with a bit of everything, and a large one."""

from collections.abc import Iterator

from policies.node_state import Gpu, NodeState, Tenant, Use
from tests.console.objects import (
    GIB,
    ago,
    cluster,
    denial,
    failed_gpu,
    gpu,
    node,
    pending,
    pod,
    state,
    tenant,
)
from tests.console.stand_in import Object, StandIn

HOSTILE = '"><script>alert(1)</script>'
GRANTED = """
apiVersion: v1
kind: Pod
metadata: {name: trial, namespace: team-vision, annotations: {gpu-share: "0.2"}}
spec: {containers: [{name: main, image: busybox}]}
"""
_LANGUAGE = "team-language"
_OURS = "/api/v1/namespaces/gpu-share"
_POLICIES = {
    "_cluster.yaml": "vgpusPerGpu: 10\nexemptNamespaces: [kube-system]\n",
    "_default.yaml": 'share: {maximum: "0.5"}\n',
    "team-language.yaml": 'share:\n  minimum: "0.2"\n  maximum: "1"\nmemory: {headroom: "0.02"}\n',
    "team-vision.yaml": "mps: {attach: node}\nenvironment: {reserved: strip}\n",
}


def use(memory_gib: float, sm: float) -> Use:
    return Use(memory_bytes=int(memory_gib * GIB), sm_ratio=sm, processes=1)


def lively() -> StandIn:
    """Three nodes with a bit of everything: full and free GPUs, one that failed, pods that wait, and denials."""
    a, b = _with_failed_gpu(), _almost_full()
    why = "0/3 nodes are available: 3 Insufficient gpu-share.dev/vgpu. no new claims to deallocate."
    failed = pod(
        "late-batch-4",
        "0.4",
        on="gpu-b",
        phase="Failed",
        reason="UnexpectedAdmissionError",
        message="4 vGPUs must lie on one GPU, got 3 and 1",
    )
    told = (
        'admission webhook "pods.gpu-share.dev" denied the request: Container "main" asks for 0.8 of a GPU, '
        "at most 0.5 is allowed (_default.yaml:1)"
    )
    pods = (*_pods([a, b]), pending("sweep-17", "0.5", why), failed)
    known = cluster(a, b, pods=pods, events=(denial(told),))
    known.lists["/api/v1/nodes"].append(node("gpu-c"))
    return with_policies(known)


def _with_failed_gpu() -> NodeState:
    return state(
        gpu(
            tenant("resnet-train-0", 2, use=use(21.4, 0.41), since=ago(minutes=5)),
            tenant("segment-api-7c9d-x2x8q", 3, use=use(30.2, 0.12), since=ago(minutes=44)),
            tenant("bert-serve-0", 5, use=use(61.0, 0.77), namespace=_LANGUAGE, since=ago(minutes=51)),
        ),
        gpu(
            tenant("resnet-train-1", 2, use=use(20.9, 0.39)),
            tenant("notebook-ada", 1, namespace="science", use=use(2.3, 0.0)),
            tenant("embed-serve-0", 3, namespace=_LANGUAGE, use=use(31.4, 0.22)),
            index=1,
        ),
        gpu(tenant("llama-serve-0", 8, use=use(104.5, 0.93), namespace=_LANGUAGE), hidden=2, index=2),
        failed_gpu(tenant("notebook-emil", 1, namespace="science"), index=3),
        on="gpu-a",
    )


def _almost_full() -> NodeState:
    return state(
        gpu(tenant("bert-serve-1", 5, namespace=_LANGUAGE, use=use(60.2, 0.7)), tenant("resnet-eval", 4), hidden=1),
        gpu(
            tenant("whisper-0", 3, namespace=_LANGUAGE, use=use(18.2, 0.35)),
            tenant("whisper-1", 3, namespace=_LANGUAGE, use=use(18.1, 0.31)),
            index=1,
        ),
        gpu(tenant("batch-infer-0", 5, use=use(44.8, 0.64)), tenant("sweep-16", 2), index=2),
        gpu(
            tenant("notebook-noor", 1, namespace="science"),
            tenant("bert-eval-0", 5, namespace=_LANGUAGE, use=use(58.7, 0.52)),
            index=3,
            since=ago(minutes=12),
        ),
        on="gpu-b",
    )


def with_policies(known: StandIn, **changes: str) -> StandIn:
    """Have policies, which may be read, and a namespace for each team."""
    files = {**_POLICIES, **changes}
    edit = {"manager": "kubectl-client-side-apply", "operation": "Update", "time": ago(minutes=20)}
    own = {name: text for name, text in files.items() if name != "_cluster.yaml"}
    known.lists[f"{_OURS}/configmaps"] = [
        {"metadata": {"name": "gpu-share-policies", "managedFields": [edit]}, "data": own},
        {"metadata": {"name": "gpu-share-cluster"}, "data": {"_cluster.yaml": files["_cluster.yaml"]}},
    ]
    for name in ("team-vision", "team-language", "science"):
        known.raw[f"/api/v1/namespaces/{name}"] = (200, b'{"metadata": {"name": "x"}}')
        known.lists[f"/api/v1/namespaces/{name}/pods"] = [
            one for one in known.lists["/api/v1/pods"] if one["metadata"]["namespace"] == name
        ]
    return known


def large(nodes: int = 125, gpus: int = 8, tenants: int = 5) -> StandIn:
    """1,000 GPUs with 5,000 pods."""
    states = [_large_node(number, gpus, tenants) for number in range(nodes)]
    return with_policies(cluster(*states, pods=tuple(_pods(states))))


def _large_node(number: int, gpus: int, tenants: int) -> NodeState:
    return state(*(_large_gpu(number, index, tenants) for index in range(gpus)), on=f"gpu-{number:03}")


def _large_gpu(number: int, index: int, tenants: int) -> Gpu:
    on: list[Tenant] = [
        tenant(f"serve-{number:03}-{index}-{place}", 1, namespace=f"team-{place}", use=use(3 + place, 0.1 * place))
        for place in range(tenants)
    ]
    return gpu(*on, index=index, uuid=f"GPU-{number:03}-{index}", hidden=index % 2)


def _pods(states: list[NodeState]) -> Iterator[Object]:
    """The pods that hold the shares."""
    for one in states:
        for made in one.gpus:
            for held in made.tenants:
                yield pod(held.pod, str(held.parts / 10), namespace=held.namespace, on=one.node)
