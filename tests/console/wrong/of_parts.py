"""Installations in which pods of gpu-share do not run on the nodes, or not all by the same image."""

from typing import Any

from console.doctor.installation import Installation
from console.objects import Pod
from console.seen import ON_NODES
from tests.console.installations import PARTS, Wrong, installation, parsed, parts, seen, waiting
from tests.console.objects import ago, part
from tests.console.stand_in import Object


def run(*made: Object) -> Installation:
    return installation(seen(parts=tuple(parsed(one, Pod) for one in made)))


def upgraded() -> Installation:
    """One in which `gpu-share mps` has its old pod."""
    made = [part("gpu-0", one) for one in PARTS]
    for one in made:
        (container,) = one["spec"]["containers"]
        container["image"] = f"gpu-share:{'0.1.0' if container['name'] == 'mps' else '0.2.0'}"
    return run(*made)


def left_over(component: str) -> list[Object]:
    """The pods of a node that was shut down, or is gone: they stay listed."""
    ended, gone = part("cpu-1", component), part("cpu-2", component)
    ended["status"] = {"phase": "Failed", "reason": "Terminated", "containerStatuses": waiting("Completed")}
    gone["metadata"]["deletionTimestamp"] = ago(minutes=30)
    return [ended, gone]


BEHIND: dict[str, Any] = {"phase": "Pending", "containerStatuses": waiting("PodInitializing")}
DONE: list[Object] = [{"name": "first", "ready": True, "state": {"terminated": {"reason": "Completed"}}}]
ONCE_ENDED: Object = {"lastState": {"terminated": {"reason": "OOMKilled"}}}
SIDECAR: list[Object] = [{"name": "proxy", "ready": True, "state": {"running": {}}, **ONCE_ENDED}]
CRASHED: list[Object] = [{"name": "first", "ready": False, "state": {"running": {}}, **ONCE_ENDED}]
WRONG: list[Wrong] = [
    (
        "parts-run",
        "failure",
        "gpu-share-mps-gpu-0 on gpu-0 is not ready: CrashLoopBackOff: no such image",
        lambda: parts("mps", containerStatuses=waiting("CrashLoopBackOff")),
    ),
    (
        "parts-run",
        "warning",
        "gpu-share-plugin-gpu-0 on gpu-0 is not ready: ContainerCreating",
        lambda: parts("plugin", containerStatuses=waiting("ContainerCreating")),
    ),
    (
        "parts-run",
        "warning",
        "gpu-0 has no pod of gpu-share-mps",
        lambda: run(*(part("gpu-0", one) for one in PARTS if one != "mps"), part("gpu-1"), part("gpu-1", "mps")),
    ),
    (
        "parts-run",
        "warning",
        "gpu-0 has no pod of gpu-share-mps",
        lambda: run(*(part("gpu-0", one) for one in PARTS if one != "mps")),
    ),
    (
        "parts-run",
        "warning",
        "gpu-0 has no pod of gpu-share-plugin",
        lambda: run(*(part("gpu-0", one) for one in PARTS if one not in ON_NODES)),
    ),
    (
        "parts-run",
        "failure",
        "gpu-share-plugin-gpu-0 on gpu-0 is not ready: ImagePullBackOff: no such image",
        lambda: parts("plugin", initContainerStatuses=waiting("ImagePullBackOff"), **BEHIND),
    ),
    (
        "parts-run",
        "failure",
        "gpu-share-plugin-gpu-0 on gpu-0 is not ready: ImagePullBackOff: no such image",
        lambda: parts("plugin", initContainerStatuses=DONE, containerStatuses=waiting("ImagePullBackOff")),
    ),
    (
        "parts-run",
        "failure",
        "gpu-share-plugin-gpu-0 on gpu-0 is not ready: ImagePullBackOff: no such image",
        lambda: parts("plugin", initContainerStatuses=SIDECAR, containerStatuses=waiting("ImagePullBackOff")),
    ),
    (
        "parts-run",
        "warning",
        "gpu-share-plugin-gpu-0 on gpu-0 is not ready: OOMKilled",
        lambda: parts("plugin", initContainerStatuses=CRASHED, **BEHIND),
    ),
    (
        "parts-run",
        "warning",
        "gpu-share-plugin-gpu-0 on gpu-0 is not ready: Running",
        lambda: parts("plugin", initContainerStatuses=SIDECAR, containerStatuses=[{"name": "main", "ready": False}]),
    ),
    (
        "images",
        "failure",
        "gpu-share-plugin-gpu-0: ImagePullBackOff: no such image",
        lambda: parts("plugin", initContainerStatuses=waiting("ImagePullBackOff"), **BEHIND),
    ),
    ("parts-same", "warning", "gpu-share-mps-gpu-0 run gpu-share:0.1.0", upgraded),
    (
        "renewal",
        "warning",
        "no pod of gpu-share-certs runs",
        lambda: run(*(part("gpu-0", one) for one in PARTS if one != "certs"), *left_over("certs")),
    ),
    (
        "webhook-runs",
        "failure",
        "none of 1 webhook pods is ready",
        lambda: parts("webhook", conditions=[{"type": "Ready", "status": "False"}]),
    ),
]
