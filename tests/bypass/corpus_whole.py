"""Attempts around whole GPUs: to get one where there are none, more of them, or what only vGPUs come with."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import GRANT, Attempt, by_policy, by_webhook, forged, variable, with_spec
from tests.policies.pods import GPU, VGPU, container, limited, pod

GPUS = "share: {whole: gpus}"
MANY = "share: {whole: gpus, maximum: '2', podMaximum: '2'}"
WHOLE_GRANT = (
    '{"policy":"_default","strategy":"whole","resource":"gpu-share.dev/gpu",'
    '"containers":{"main":{"vgpus":%d,"share":"%d","of":1}}}'
)
NOT_OURS = "not what gpu-share wrote"


def whole_gpus() -> list[Attempt]:
    """List every attempt."""
    return [*_where_there_are_none(), *_more_than_allowed(), *_beside_them(), *_in_the_api_server()]


def forged_whole(gpus: int = 1, **changes: Any) -> dict[str, Any]:
    """A pod that looks as if the webhook had granted it whole GPUs."""
    made = pod(None, limited("main", str(gpus), GPU, **changes))
    made["metadata"]["annotations"] = {"gpu-share.dev/grant": WHOLE_GRANT % (gpus, gpus)}
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def _with_grant(on: dict[str, Any], text: str) -> dict[str, Any]:
    on["metadata"]["annotations"]["gpu-share.dev/grant"] = text
    return on


def _where_there_are_none() -> Iterator[Attempt]:
    code = "ConflictingRequest"
    for quantity in (1, "1", "1000m", "1e0", "1k", "0.5", "-1"):
        on = pod(None, limited("main", quantity, GPU))
        yield by_webhook(f"a limit of {quantity!r} whole GPUs where they are given as vGPUs", code, on)
    init = limited("i", 1, GPU)
    yield by_webhook("a whole GPU in an init container", code, pod("0.1", initContainers=[init]))
    sidecar = init | {"restartPolicy": "Always"}
    yield by_webhook("a whole GPU in a sidecar", code, pod("0.1", initContainers=[sidecar]))
    requested = container(resources={"requests": {GPU: 1}})
    yield by_webhook("a request of a whole GPU without a limit", code, pod(None, requested))
    yield by_webhook("a whole GPU beside a share by annotation", code, pod("0.1", container(), limited("b", 1, GPU)))
    both = container(resources={"limits": {VGPU: 1, GPU: 1}})
    yield by_webhook("a whole GPU beside a vGPU", code, pod(None, both))
    yield by_webhook("a forged grant of a whole GPU with its limit", code, forged_whole())
    labelled = pod(None, limited("main", 1, GPU))
    labelled["metadata"] |= {
        "namespace": "kube-system",
        "labels": {"gpu-share.dev/mode": "warn", "kubernetes.io/metadata.name": "kube-system"},
    }
    yield by_webhook("a whole GPU in a pod that looks exempt", code, labelled)


def _more_than_allowed() -> Iterator[Attempt]:
    above = "ShareAboveMaximum"
    for quantity in ("2", "1k", "1Ei", "2000m"):
        on = pod(None, limited("main", quantity, GPU))
        yield by_webhook(f"a limit of {quantity} whole GPUs where one is allowed", above, on, GPUS)
    half = "share: {whole: gpus, maximum: '0.5'}"
    yield by_webhook("a whole GPU where half of one is allowed", above, pod(None, limited("main", 1, GPU)), half)
    for quantity in ("0.5", "-1", "1e999", "NaN"):
        on = pod(None, limited("main", quantity, GPU))
        yield by_webhook(f"a limit of {quantity} whole GPUs", "ShareMalformed", on, GPUS)
    over = "PodShareAboveMaximum"
    three = [limited(f"c{number}", 1, GPU) for number in range(3)]
    yield by_webhook("three containers with a whole GPU each", over, pod(None, *three), MANY)
    sidecars = [limited(f"s{number}", 1, GPU, restartPolicy="Always") for number in range(2)]
    yield by_webhook("sidecars whose whole GPUs add up", over, pod("1", initContainers=sidecars), MANY)
    code = "ConflictingRequest"
    yield by_webhook("two GPUs by limit and one by annotation", code, pod("1", limited("main", 2, GPU)), MANY)
    yield by_webhook("a whole GPU by limit and a part by annotation", code, pod("0.1", limited("main", 1, GPU)), MANY)
    elsewhere = pod("0.1", container(), limited("b", 1, GPU))
    yield by_webhook("a whole GPU by limit beside a part of one", code, elsewhere, MANY)
    twice = container(resources={"limits": {VGPU: 10, GPU: 1}})
    yield by_webhook("one GPU as vGPUs and as a whole one", code, pod("1", twice), MANY)
    apart = pod(None, limited("a", 10), initContainers=[limited("i", 1, GPU)])
    yield by_webhook("vGPUs, and a whole GPU in an init container", code, apart, MANY)
    requested = container(resources={"requests": {GPU: 2}, "limits": {GPU: 1}})
    yield by_webhook("a request above the limit of whole GPUs", code, pod("1", requested), MANY)
    yield by_webhook("a request of whole GPUs alone", code, pod("1", container(resources={"requests": {GPU: 1}})), MANY)


def _beside_them() -> Iterator[Attempt]:
    code = "ConflictingRequest"
    vendor = limited("b", 1, "nvidia.com/gpu")
    yield by_webhook("a vendor's GPU beside a whole one", code, pod("1", container(), vendor), GPUS)
    yield by_webhook("hostIPC with a whole GPU", code, pod("1", hostIPC=True), GPUS)
    pipes = [{"name": "p", "hostPath": {"path": "/tmp/nvidia-mps/"}}]
    yield by_webhook("the pipes of others with a whole GPU", code, pod("1", volumes=pipes), GPUS)
    devices = [{"name": "d", "hostPath": {"path": "/dev"}}]
    yield by_webhook("all devices with a whole GPU", code, pod("1", volumes=devices), GPUS)
    code = "PrivilegedContainer"
    yield by_webhook("hostPID with a whole GPU", code, pod("1", hostPID=True), GPUS)
    privileged = container("b", securityContext={"privileged": True})
    yield by_webhook("a privileged container beside a whole GPU", code, pod("1", container(), privileged), GPUS)
    named = container(env=[variable("NVIDIA_VISIBLE_DEVICES", "0,1")])
    yield by_webhook("a whole GPU and another by name", "ReservedEnvironment", pod("1", named), GPUS)
    yield Attempt("a fifth where whole GPUs are handed out", pod("0.2"), "harmless", rules=GPUS)
    claimed = _with_grant(pod("0.2"), WHOLE_GRANT % (1, 1))
    yield Attempt("a fifth with a forged grant of a whole GPU", claimed, "harmless", rules=GPUS)


def _in_the_api_server() -> Iterator[Attempt]:
    none = "granted it none"
    yield by_policy("a whole GPU by limit while the webhook is down", none, pod(None, limited("main", "1", GPU)))
    init = pod(None, initContainers=[limited("i", "1", GPU)])
    yield by_policy("a whole GPU in an init container while the webhook is down", none, init)
    yield by_policy("hostIPC with a forged grant of a whole GPU", "hostIPC", with_spec(forged_whole(), hostIPC=True))
    attached = (WHOLE_GRANT % (1, 1)).replace('"whole"', '"whole","attach":"pod"')
    host = with_spec(_with_grant(forged_whole(), attached), hostIPC=True)
    yield by_policy("a forged grant of a whole GPU that attaches", NOT_OURS, host)
    in_vgpus = (WHOLE_GRANT % (2, 2)).replace(GPU, VGPU)
    mounted = [{"name": "mine", "mountPath": "/dev/shm"}]
    swapped = _with_grant(forged(volumeMounts=mounted), in_vgpus)
    yield by_policy("vGPUs granted as whole ones, with a mount that goes around MPS", NOT_OURS, swapped)
    sliced = (GRANT % (2, "0.2")).replace('"mps","attach":"pod"', '"time-slicing"')
    swapped = _with_grant(forged(volumeMounts=mounted), sliced)
    yield by_policy("vGPUs of MPS granted as time-sliced, with a mount that goes around MPS", NOT_OURS, swapped)
    as_mps = (GRANT % (1, "1")).replace(VGPU, GPU)
    host = with_spec(_with_grant(forged_whole(), as_mps), hostIPC=True)
    yield by_policy("a whole GPU granted as vGPUs, for hostIPC", NOT_OURS, host)
    limits = "not what gpu-share.dev/grant says"
    for quantity in ("2", "1k"):
        on = _with_grant(forged_whole(), WHOLE_GRANT % (1, 1))
        on["spec"]["containers"] = [limited("main", quantity, GPU)]
        yield by_policy(f"a limit of {quantity} beside a forged grant of one whole GPU", limits, on)
    both = forged()
    both["spec"]["containers"][0]["resources"]["limits"][GPU] = "1"
    yield by_policy("a whole GPU that another webhook adds beside vGPUs", limits, both)
    more = with_spec(forged_whole(), initContainers=[limited("i", "1", GPU)])
    yield by_policy("an init container with a whole GPU beside a forged grant", NOT_OURS, more)
    asking = forged_whole()
    asking["spec"]["containers"].append(container("b", resources={"requests": {GPU: "1"}}))
    yield by_policy("a request alone beside a forged grant", "requests another number", asking)
    vendor = forged_whole()
    vendor["spec"]["containers"].append(limited("b", "1", "nvidia.com/gpu"))
    yield by_policy("a vendor's GPU beside a forged grant of a whole one", "never both", vendor)
    pipes = [{"name": "p", "hostPath": {"path": "/tmp/nvidia-mps"}}]
    yield by_policy(
        "the pipes beside a forged grant of a whole GPU", "hostPath", with_spec(forged_whole(), volumes=pipes)
    )
    named = [variable("NVIDIA_VISIBLE_DEVICES")]
    yield by_policy(
        "a variable beside a forged grant of a whole GPU", "sets a reserved variable", forged_whole(env=named)
    )
