"""Installations in which a check of pods with a share fails."""

from console.doctor.installation import Installation
from console.objects import Node
from console.seen import Denial
from console.seen_nodes import seen_nodes
from policies.node_state import Ages, Use
from policies.outsiders import OfNode, Outsider
from tests.console.installations import (
    Wrong,
    fragmented,
    installation,
    nodes,
    parsed,
    pods,
    policies,
    seen,
    waiting,
    with_node,
)
from tests.console.objects import GIB, ago, closed, gpu, pending, pod, state, tenant
from tests.console.stand_in import Object

DENIAL = Denial(namespace="team-vision", kind="ReplicaSet", name="r", message="gpu-share: no", count=1, last=None)


def over() -> Installation:
    return with_node(gpu(tenant("a", 2, use=Use(memory_bytes=60 * GIB))), gpu(index=1))


def sliced(*arguments: str) -> Installation:
    """An installation with a container of vLLM on a fifth of a GPU that is shared by time-slicing."""
    shared = gpu(tenant("a", 2, use=Use(memory_bytes=GIB, processes=1)), strategy="time-slicing", limits_enforced_by="")
    started = pod("a", on="gpu-0")
    started["spec"]["containers"][0] |= {"image": "vllm/vllm-openai:v0.11.0", "args": list(arguments)}
    return installation(seen(**nodes(state(shared, gpu(index=1), on="gpu-0")), **pods(started)))


def ending(at: str) -> Object:
    """A pod whose grace period ended then."""
    made = pod("p")
    made["metadata"]["deletionTimestamp"] = at
    return made


def not_ready(since: str) -> Object:
    """A pod whose container runs, and has not been ready since."""
    condition = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": since}
    return pod("p", conditions=[condition])


def cordoned() -> Installation:
    """A pod that waits beside a node that is cordoned, and has room."""
    there = seen_nodes([parsed(closed("cordoned"), Node)], {"gpu-b": state(gpu(), on="gpu-b")})
    return installation(seen(nodes=there, **pods(pending("late", "0.5", "1 node(s) were unschedulable."))))


def prioritised(policy: str, *, priority: int = 10, gpus: int = 2) -> Installation:
    """Pods of two priorities on a node with several GPUs."""
    first, late = pod("first", "0.6"), pod("late", "0.4")
    first["spec"] |= {"priority": priority, "priorityClassName": "urgent", "preemptionPolicy": policy}
    node = nodes(state(*(gpu(index=index) for index in range(gpus)), on="gpu-0"))
    return installation(seen(**node, **pods(first, late)))


HOG = Outsider(namespace="team-vision", pod="hog", container="main", processes=2, memory_bytes=3 * GIB)
WRONG: list[Wrong] = [
    (
        "with-share",
        "warning",
        "team-vision/hog/main has no share of GPU 0 on gpu-0, and 2 processes with 3.0 GiB",
        lambda: with_node(gpu(outsiders=(HOG,)), gpu(index=1)),
    ),
    (
        "with-share",
        "warning",
        "no container has 1 process with 1.0 GiB on GPU 1 on gpu-0",
        lambda: with_node(gpu(), gpu(index=1, outsiders=None, of_node=OfNode(processes=1, memory_bytes=GIB))),
    ),
    (
        "with-share",
        "unknown",
        "who uses GPU 1 on gpu-0 without a share is not known",
        lambda: with_node(gpu(), gpu(index=1, outsiders=None)),
    ),
    (
        "pods-run",
        "warning",
        "team-vision/late is Pending: 1 Insufficient",
        lambda: installation(seen(**pods(pending("late", "0.4", "1 Insufficient")))),
    ),
    (
        "pods-run",
        "warning",
        "team-vision/p is Failed: UnexpectedAdmissionError",
        lambda: installation(seen(**pods(pod("p", phase="Failed", reason="UnexpectedAdmissionError")))),
    ),
    (
        "pods-run",
        "warning",
        "team-vision/p is Running: CrashLoopBackOff: no such image",
        lambda: installation(seen(**pods(pod("p", containerStatuses=waiting("CrashLoopBackOff"))))),
    ),
    (
        "pods-run",
        "warning",
        "team-vision/p is Terminating: nothing says why",
        lambda: installation(seen(**pods(ending(ago(days=2))))),
    ),
    (
        "pods-run",
        "warning",
        "team-vision/p is Running, and not Ready for 15 min: ContainersNotReady",
        lambda: installation(seen(**pods(not_ready(ago(minutes=15))))),
    ),
    ("pods-admitted", "warning", "team-vision/ReplicaSet/r", lambda: installation(seen(denials=(DENIAL,)))),
    ("shares-fit", "warning", "0.5 of GPUs is free, the largest share that fits is 0.3", fragmented),
    ("shares-fit", "warning", "0.5 of GPUs is free, the largest share", lambda: fragmented(hidden=2)),
    (
        "shares-fit",
        "warning",
        "the smallest that waits is 0.5, and has room only on gpu-b (cordoned), to which no new pod comes",
        cordoned,
    ),
    (
        "evictions-help",
        "warning",
        "urgent: team-vision/first may evict team-vision/late, and what that frees may be too little on any one GPU",
        lambda: prioritised("PreemptLowerPriority"),
    ),
    (
        "numbers-agree",
        "warning",
        "team-vision/late: main was granted 4 of 10 vGPUs, and a GPU is divided into 20 now",
        lambda: installation(seen(**pods(pending("late", "0.4", "no room"))), **policies("vgpusPerGpu: 20\n")),
    ),
    ("within-share", "failure", "takes 60.0 GiB of its 28.0 GiB", over),
    *(
        (
            "within-share",
            "unknown",
            "who has shares on gpu-0 is not known: the kubelet does not answer",
            lambda one=one: with_node(one, tenants_unknown="the kubelet does not answer"),
        )
        for one in (gpu(), gpu(strategy="time-slicing", limits_enforced_by=""), gpu(uuid="MIG-0", outsiders=None))
    ),
    (
        "within-share",
        "warning",
        "what team-vision/b/main takes on gpu-0 is not known",
        lambda: with_node(gpu(tenant("a", 2, use=Use(memory_bytes=GIB, processes=1)), tenant("b", 2)), gpu(index=1)),
    ),
    (
        "within-share",
        "warning",
        "what team-vision/a/main takes on gpu-0 is not known",
        lambda: with_node(gpu(tenant("a", 2)), gpu(index=1)),
    ),
    (
        "within-share",
        "warning",
        "what containers on gpu-0 take was last measured 3600 s ago",
        lambda: with_node(gpu(tenant("a", 2)), ages=Ages(health=1.0, tenants=2.0, use=3600.0)),
    ),
    (
        "within-share",
        "warning",
        "what containers on gpu-0 take has not been measured",
        lambda: with_node(gpu(tenant("a", 2)), ages=Ages(health=1.0, tenants=2.0)),
    ),
    (
        "within-share",
        "warning",
        "team-vision/a/main on gpu-0: time-slicing limits no memory, and no setting of a framework does",
        lambda: sliced("python train.py"),
    ),
]
