"""Pods that try to get more than their share, and who stops each."""

from collections.abc import Iterator
from typing import Any

from policies.contract import RESERVED_VARIABLES
from tests.bypass.attempt import GRANT, Attempt, by_policy, by_webhook, forged, variable, with_spec
from tests.bypass.corpus_devices import other_devices
from tests.bypass.corpus_dra import by_dra
from tests.bypass.corpus_memory import memory
from tests.bypass.corpus_mig import mig
from tests.bypass.corpus_models import models
from tests.bypass.corpus_node import arguments, directories, grants
from tests.bypass.corpus_paths import paths
from tests.bypass.corpus_privileges import privileges
from tests.bypass.corpus_whole import whole_gpus
from tests.policies.pods import VGPU, container, limited, pod

NO_SHARES = (
    "\u0660.\u0662",
    "0\u00b72",
    "\uff10.\uff12",
    "1e0",
    "1E1",
    "NaN",
    "nan",
    "inf",
    "Infinity",
    "-0.2",
    "+0.2",
    "0x1",
    "0_2",
    " 0.2",
    "0.2 ",
    "0.2\n",
    "0.2000",
    "1.5",
    "0",
    "0%",
    "",
    "1/5",
    "0,2",
    ".2",
    "0.",
    "9" * 30,
    "0.2;1",
    "150%",
)


def corpus() -> list[Attempt]:
    """List every attempt."""
    return [
        *_variables(),
        *_shares(),
        *_requests(),
        *_privileges(),
        *directories(),
        *paths(),
        *arguments(),
        *memory(),
        *mig(),
        *models(),
        *grants(),
        *whole_gpus(),
        *by_dra(),
        *other_devices(),
        *privileges(),
    ]


def _variables() -> Iterator[Attempt]:
    code = "ReservedEnvironment"
    others = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "NVIDIA_GPU_MEMORY_LIMIT")
    for name in (*sorted(RESERVED_VARIABLES), *others):
        yield by_webhook(f"{name} in env", code, pod("0.2", container(env=[variable(name)])))
    reference = {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    by_reference = [variable("NVIDIA_VISIBLE_DEVICES", None, **reference)]
    yield by_webhook("a reserved variable by reference", code, pod("0.2", container(env=by_reference)))
    init = container("init", env=[variable("NVIDIA_VISIBLE_DEVICES")])
    yield by_webhook("a reserved variable in an init container", code, pod("0.2", initContainers=[init]))
    sidecar = init | {"restartPolicy": "Always"}
    yield by_webhook("a reserved variable in a sidecar", code, pod("0.2", initContainers=[sidecar]))
    beside = container("beside", env=[variable("NVIDIA_VISIBLE_DEVICES", "0")])
    yield by_webhook("a container beside the share that names a GPU", code, pod("0.2", container(), beside))
    twice = [variable("NVIDIA_VISIBLE_DEVICES", "void"), variable("NVIDIA_VISIBLE_DEVICES", "all")]
    yield by_webhook("a reserved variable given twice", code, pod("0.2", container(), container("b", env=twice)))
    from_all = container(envFrom=[{"configMapRef": {"name": "mine"}}])
    yield by_webhook(
        "variables from a ConfigMap where the policy says deny",
        code,
        pod("0.2", from_all),
        "environment: {envFrom: deny}",
    )
    stripped = pod("0.2", container(env=[variable("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100")]))
    yield Attempt(
        "a reserved variable where the policy says strip", stripped, "harmless", rules="environment: {reserved: strip}"
    )
    yield by_policy(
        "a reserved variable that another webhook adds",
        "sets a reserved variable",
        forged(env=[variable("NVIDIA_VISIBLE_DEVICES")]),
    )
    yield Attempt(
        "an image's own variables in a container beside the share", pod("0.2", container(), container("b")), "harmless"
    )
    # NVIDIA's toolkit 1.18 gives all GPUs for it: NVIDIA/nvidia-container-toolkit#1555
    none = container("b", env=[variable("NVIDIA_VISIBLE_DEVICES", "none")])
    yield Attempt("a container beside the share that asks for no GPU", pod("0.2", container(), none), "harmless")
    on = forged()
    on["spec"]["containers"].append(none)
    yield by_policy(
        "no GPU asked for beside a forged grant",
        "A container without a GPU share, in a pod with one, sets a reserved variable",
        on,
    )


def _shares() -> Iterator[Attempt]:
    for text in NO_SHARES:
        yield by_webhook(f"the share {text!a}", "ShareMalformed", pod(text))
    yield by_webhook("a share of a million GPUs", "ShareAboveMaximum", pod("1000000"))
    yield by_webhook(
        "more than the maximum as a percentage", "ShareAboveMaximum", pod("60%"), 'share: {maximum: "0.5"}'
    )
    yield by_webhook(
        "less than the minimum, to take a whole vGPU of it", "ShareBelowMinimum", pod("0.01"), 'share: {minimum: "0.1"}'
    )
    both = {"gpu-share": "0.1", "gpu-share.dev/share": "0.9"}
    yield by_webhook("two annotations that differ", "ConflictingRequest", pod(None, annotations=both))
    named = {f"container.gpu-share.dev/c{n}": "0.2" for n in range(40)}
    many = [container(f"c{n}") for n in range(40)]
    yield by_webhook("forty containers with a fifth each", "PodShareAboveMaximum", pod(None, *many, annotations=named))
    sidecars = [container(f"s{n}", restartPolicy="Always") for n in range(6)]
    theirs = {f"container.gpu-share.dev/s{n}": "0.2" for n in range(6)}
    yield by_webhook(
        "sidecars that add up", "PodShareAboveMaximum", pod("0.2", initContainers=sidecars, annotations=theirs)
    )
    yield by_webhook(
        "a share for a container that is not there",
        "UnknownContainer",
        pod(None, annotations={"container.gpu-share.dev/x": "0.2"}),
    )
    yield by_webhook("a share where there are none", "SharingDisabled", pod("0.2"), "enabled: false")


def _requests() -> Iterator[Attempt]:
    yield by_webhook(
        "more vGPUs by limit than allowed",
        "ShareAboveMaximum",
        pod(None, limited("main", "9")),
        'share: {maximum: "0.5"}',
    )
    yield by_webhook(
        "a limit that disagrees with the annotation", "ConflictingRequest", pod("0.2", limited("main", "8"))
    )
    yield by_webhook(
        "more vGPUs than a GPU has, and not whole GPUs",
        "ShareMalformed",
        pod(None, limited("main", "15", "gpu-share.dev/vgpu-timesliced")),
        'strategy: time-slicing\nshare: {maximum: "2"}',
    )
    several = 'share: {maximum: "4", podMaximum: "4"}'
    for quantity in ("11", "15", "20", "1k"):
        on = pod(None, limited("main", quantity))
        yield by_webhook(f"{quantity} vGPUs under MPS, more than one GPU", "ShareAboveMaximum", on, several)
    yield by_webhook("two GPUs under MPS, of which a process would reach none", "ShareAboveMaximum", pod("2"), several)
    for quantity in ("0.5", "-1", "NaN", "1e999", "2Gi2"):
        yield by_webhook(f"the limit {quantity}", "ShareMalformed", pod(None, limited("main", quantity)))
    unequal = container(resources={"limits": {VGPU: "2"}, "requests": {VGPU: "1"}})
    yield by_webhook("a request below its limit", "ConflictingRequest", pod(None, unequal))
    yield by_webhook(
        "a request without a limit", "ConflictingRequest", pod(None, container(resources={"requests": {VGPU: "2"}}))
    )
    for whole in (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.5gb",
        "amd.com/gpu",
        "gpu.intel.com/i915",
    ):
        both = container(resources={"limits": {whole: "1"}})
        yield by_webhook(f"{whole} beside the share", "ConflictingRequest", pod("0.2", both))
    beside = container("beside", resources={"limits": {"nvidia.com/gpu": "1"}})
    yield by_webhook("a whole GPU in the next container", "ConflictingRequest", pod("0.2", container(), beside))
    other = limited("main", "2", "gpu-share.dev/vgpu-timesliced")
    yield by_webhook("the resource of another strategy", "ConflictingRequest", pod(None, other))
    yield by_policy("a raw limit while the webhook is down", "granted it none", pod(None, limited("main", "2")))
    yield by_policy("an annotation while the webhook is down", "granted it none", pod("0.2"))
    yield by_policy("a whole GPU that another webhook adds", "never both", _forged_with_whole_gpu())


def _forged_with_whole_gpu() -> dict[str, Any]:
    made = forged()
    made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    return made


def _privileges() -> Iterator[Attempt]:
    code = "PrivilegedContainer"
    yield by_webhook("a privileged container", code, pod("0.1", container(securityContext={"privileged": True})))
    init = container("init", securityContext={"privileged": True})
    yield by_webhook("a privileged init container", code, pod("0.1", initContainers=[init]))
    yield by_webhook("hostPID", code, pod("0.1", hostPID=True))
    yield by_webhook("a node that the pod names", "ConflictingRequest", pod("0.1", nodeName="node1"))
    yield by_policy("a node that another webhook names", "remove nodeName", with_spec(forged(), nodeName="node1"))
    for capability in ("ALL", "SYS_ADMIN", "cap_sys_admin", "SYS_MODULE", "SYS_RAWIO"):
        added = container(securityContext={"capabilities": {"add": [capability]}})
        yield by_webhook(f"the capability {capability}", code, pod("0.1", added))
    yield by_webhook("a user namespace with the host's IPC", "HostUsersConflict", pod("0.1", hostUsers=False))
    yield by_policy(
        "privileges that another webhook adds", "may not be privileged", forged(securityContext={"privileged": True})
    )
    yield by_policy("hostPID that another webhook adds", "hostPID", with_spec(forged(), hostPID=True))
    node = with_spec(forged(), hostIPC=True)
    node["metadata"]["annotations"]["gpu-share.dev/grant"] = (GRANT % (2, "0.2")).replace('"pod"', '"node"')
    yield by_policy("hostIPC that was not granted", "hostIPC", node)
