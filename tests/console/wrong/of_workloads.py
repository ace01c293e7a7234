"""Installations in which a check of pods with a share fails."""

from console.doctor.installation import Installation
from console.seen import Denial
from policies.node_state import Use
from tests.console.installations import Wrong, fragmented, installation, pods, policies, seen, with_node
from tests.console.objects import GIB, gpu, pending, pod, tenant

DENIAL = Denial(namespace="team-vision", kind="ReplicaSet", name="r", message="gpu-share: no", count=1, last=None)


def over() -> Installation:
    return with_node(gpu(tenant("a", 2, use=Use(memory_bytes=60 * GIB))), gpu(index=1))


def sliced() -> Installation:
    several = (tenant("a", 2), tenant("b", 1), tenant("c", 1, namespace="team-language"))
    shared = gpu(*several, strategy="time-slicing", limits_enforced_by="")
    return with_node(shared, gpu(index=1))


WRONG: list[Wrong] = [
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
    ("pods-admitted", "warning", "team-vision/ReplicaSet/r", lambda: installation(seen(denials=(DENIAL,)))),
    ("shares-fit", "warning", "0.5 of GPUs is free, the largest share that fits is 0.3", fragmented),
    ("shares-fit", "warning", "0.5 of GPUs is free, the largest share", lambda: fragmented(hidden=2)),
    (
        "numbers-agree",
        "warning",
        "team-vision/late: main was granted 4 of 10 vGPUs, and a GPU is divided into 20 now",
        lambda: installation(seen(**pods(pending("late", "0.4", "no room"))), **policies("vgpusPerGpu: 20\n")),
    ),
    ("within-share", "failure", "takes 60.0 GiB of its 28.0 GiB", over),
    (
        "within-share",
        "warning",
        "gpu-0: time-slicing limits no memory of 3 containers, in team-language, team-vision",
        sliced,
    ),
]
