"""Attempts with GPUs that have a device of their own, where the policy does not allow it or no webhook granted it."""

from collections.abc import Iterator

from tests.bypass.attempt import Attempt, by_policy, by_webhook, forged
from tests.bypass.corpus_mig import DEVICE, forged_device
from tests.policies.pods import VGPU, container, limited, pod

T4 = f"{VGPU}-model-t4"
SLICED = f"{VGPU}-timesliced-model-t4"
WHOLE = "gpu-share.dev/gpu-model-t4"
BY_DRA = "gpu-share.dev/share-250m-model-t4"


def models() -> list[Attempt]:
    """List every attempt."""
    return [*_by_webhook(), *_in_the_api_server()]


def _by_webhook() -> Iterator[Attempt]:
    code = "DeviceNotAllowed"
    for text in ("t4", "model-t4", "T4", "t4 ", "t4,gpu", "t4\n", "-"):
        yield by_webhook(f"the device {text!r} where it is not listed", code, pod("0.2", annotations={DEVICE: text}))
    for resource in (T4, SLICED, WHOLE, BY_DRA, f"{VGPU}-model-", f"{VGPU}-model-t4-model-l4"):
        yield by_webhook(f"a limit of {resource}", code, pod(None, limited("main", "1", resource)))
        beside = pod("0.1", container(), limited("b", "1", resource), annotations={DEVICE: "gpu"})
        yield by_webhook(f"{resource} in a container beside a share of a GPU", "ConflictingRequest", beside)
    yield by_webhook("a forged grant of a device with its limit", code, forged_device(T4, T4))


def _in_the_api_server() -> Iterator[Attempt]:
    none, limits, not_ours = "granted it none", "not what gpu-share.dev/grant says", "not what gpu-share wrote"
    for resource in (T4, SLICED, WHOLE, BY_DRA):
        yield by_policy(
            f"{resource} by limit while the webhook is down", none, pod(None, limited("main", "1", resource))
        )
        alone = pod(None, container(resources={"requests": {resource: "1"}}))
        yield by_policy(f"a request of {resource} while the webhook is down", none, alone)
    yield by_policy("another device beside a forged grant", limits, forged_device(f"{VGPU}-model-l4", T4))
    yield by_policy("a MIG instance beside a forged grant of a device", limits, forged_device(granted=T4))
    yield by_policy("more of a device beside a forged grant", limits, forged_device(T4, T4, quantity="3"))
    yield by_policy("time-slices of a device granted as MPS, for hostIPC", not_ours, forged_device(SLICED, SLICED))
    yield by_policy("a whole device granted as one under MPS, for hostIPC", not_ours, forged_device(WHOLE, WHOLE))
    both = forged()
    both["spec"]["containers"][0]["resources"]["limits"][T4] = "1"
    yield by_policy("a device that another webhook adds beside vGPUs", limits, both)
    asking = forged_device(T4, T4)
    asking["spec"]["containers"].append(container("b", resources={"requests": {T4: "1"}}))
    yield by_policy("a request of a device alone beside a forged grant", "requests another number", asking)
