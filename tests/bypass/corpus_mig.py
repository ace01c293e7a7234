"""Attempts with MIG instances: a profile that the policy does not allow, or its resource without a grant."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import Attempt, by_policy, by_webhook, forged
from tests.policies.pods import VGPU, container, limited, pod

SMALL = "devices: [gpu, mig-1g.10gb]"
MIG = f"{VGPU}-mig-1g.10gb"
LARGE = f"{VGPU}-mig-3g.40gb"
WHOLE = "gpu-share.dev/gpu-mig-1g.10gb"
DEVICE = "gpu-share.dev/device"
MIG_GRANT = (
    '{"policy":"_default","strategy":"mps","attach":"pod","resource":"%s",'
    '"containers":{"main":{"vgpus":2,"share":"0.2","of":10}}}'
)


def mig() -> list[Attempt]:
    """List every attempt."""
    return [*_by_annotation(), *_by_limit(), *_in_the_api_server()]


def forged_device(resource: str = MIG, granted: str = MIG, quantity: Any = "2", **changes: Any) -> dict[str, Any]:
    """A pod that looks as if the webhook had granted it a part of a device."""
    made = pod(None, limited("main", quantity, resource, **changes))
    made["metadata"]["annotations"] = {"gpu-share.dev/grant": MIG_GRANT % granted}
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def _by_annotation() -> Iterator[Attempt]:
    code = "DeviceNotAllowed"
    for text in (
        "mig-1g.10gb",
        "mig-7g.80gb",
        "MIG-1g.10gb",
        "gpu ",
        "",
        "mig-",
        "mig-1g.10gb,gpu",
        "mig-1g.10gb\n",
        "all",
    ):
        yield by_webhook(f"the device {text!r} where shares are of GPUs", code, pod("0.2", annotations={DEVICE: text}))
    other = pod("0.2", annotations={DEVICE: "mig-3g.40gb"})
    yield by_webhook("a larger profile than the policy lists", code, other, SMALL)
    whole = pod("0.2", annotations={DEVICE: "gpu"})
    yield by_webhook("a whole GPU where shares are of MIG instances", code, whole, "devices: [mig-1g.10gb]")
    two = pod("0.2", container(), limited("b", "2", LARGE), annotations={DEVICE: "mig-1g.10gb"})
    yield by_webhook("a second profile in another container", "ConflictingRequest", two, SMALL)
    both = pod("0.2", limited("main", "2", VGPU), annotations={DEVICE: "mig-1g.10gb"})
    yield by_webhook("vGPUs of GPUs beside the annotation", "ConflictingRequest", both, SMALL)
    several = pod("2", annotations={DEVICE: "mig-1g.10gb"})
    rules = f"{SMALL}\nshare: {{maximum: '4', podMaximum: '4', whole: gpus}}"
    yield by_webhook("several MIG instances in one container", "ShareAboveMaximum", several, rules)
    above = pod("0.6", annotations={DEVICE: "mig-1g.10gb"})
    half = f"{SMALL}\nshare: {{maximum: '0.5'}}"
    yield by_webhook("more of an instance than the policy allows", "ShareAboveMaximum", above, half)


def _by_limit() -> Iterator[Attempt]:
    code = "DeviceNotAllowed"
    for resource in (
        MIG,
        WHOLE,
        f"{VGPU}-timesliced-mig-1g.10gb",
        f"{VGPU}-mig-",
        "gpu-share.dev/share-200m-mig-1g.10gb",
    ):
        yield by_webhook(f"a limit of {resource}", code, pod(None, limited("main", "1", resource)))
        init = limited("i", "1", resource)
        yield by_webhook(f"{resource} in an init container alone", code, pod(None, initContainers=[init]))
        beside = pod("0.1", container(), limited("b", "1", resource), annotations={DEVICE: "gpu"})
        yield by_webhook(f"{resource} in a container beside a share of a GPU", "ConflictingRequest", beside)
    requested = container(resources={"requests": {MIG: "1"}})
    yield by_webhook("a request of a MIG instance's vGPUs without a limit", code, pod(None, requested))
    yield by_webhook("a forged grant of a MIG instance with its limit", code, forged_device())
    sliced = pod(None, limited("main", "1", f"{VGPU}-timesliced-mig-1g.10gb"))
    yield by_webhook("time-slices of an instance", "ConflictingRequest", sliced, SMALL)
    whole = pod(None, limited("main", "1", WHOLE))
    yield by_webhook("a whole instance where shares are vGPUs", "ConflictingRequest", whole, SMALL)


def _in_the_api_server() -> Iterator[Attempt]:
    none, limits, not_ours = "granted it none", "not what gpu-share.dev/grant says", "not what gpu-share wrote"
    for resource in (MIG, WHOLE, f"{VGPU}-timesliced-mig-1g.10gb", "gpu-share.dev/share-200m-mig-1g.10gb"):
        yield by_policy(
            f"{resource} by limit while the webhook is down", none, pod(None, limited("main", "1", resource))
        )
        alone = pod(None, container(resources={"requests": {resource: "1"}}))
        yield by_policy(f"a request of {resource} while the webhook is down", none, alone)
    yield by_policy("another profile beside a forged grant", limits, forged_device(LARGE))
    yield by_policy("more of an instance beside a forged grant", limits, forged_device(quantity="3"))
    yield by_policy("vGPUs of GPUs beside a forged grant of an instance", limits, forged_device(VGPU))
    yield by_policy("a whole instance granted as one under MPS, for hostIPC", not_ours, forged_device(WHOLE, WHOLE))
    sliced = f"{VGPU}-timesliced-mig-1g.10gb"
    yield by_policy("time-slices of an instance, which nobody has", not_ours, forged_device(sliced, sliced))
    both = forged()
    both["spec"]["containers"][0]["resources"]["limits"][MIG] = "1"
    yield by_policy("an instance that another webhook adds beside vGPUs", limits, both)
    asking = forged_device()
    asking["spec"]["containers"].append(container("b", resources={"requests": {MIG: "1"}}))
    yield by_policy("a request of an instance alone beside a forged grant", "requests another number", asking)
    second = forged_device()
    second["spec"]["containers"].append(limited("b", "1", LARGE))
    yield by_policy("a second container with an instance beside a forged grant", not_ours, second)
