"""Attempts with the resources of Dynamic Resource Allocation: a size that was not granted, or by another name."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import GRANT, Attempt, by_policy, by_webhook, forged, with_spec
from tests.policies.pods import VGPU, container, limited, pod

BY_DRA = "allocation: dra"
FIFTH = "gpu-share.dev/share-200m"
HALF = "gpu-share.dev/share-500m"
IMPLICIT = "deviceclass.resource.kubernetes.io/share-200m.gpu-share.dev"
DRA_GRANT = (
    '{"policy":"_default","strategy":"mps","attach":"pod","allocation":"dra",'
    '"containers":{"main":{"resource":"%s","share":"0.2"}}}'
)
NOT_OURS = "not what gpu-share wrote"


def by_dra() -> list[Attempt]:
    """List every attempt."""
    return [*_where_the_device_plugin_allocates(), *_more_than_allowed(), *_in_the_api_server()]


def forged_dra(resource: str = FIFTH, granted: str = FIFTH, quantity: Any = "1", **changes: Any) -> dict[str, Any]:
    """A pod that looks as if the webhook had granted it a device of DRA."""
    made = pod(None, limited("main", quantity, resource, **changes))
    made["metadata"]["annotations"] = {"gpu-share.dev/grant": DRA_GRANT % granted}
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def _where_the_device_plugin_allocates() -> Iterator[Attempt]:
    code = "ConflictingRequest"
    for resource in (
        FIFTH,
        f"{FIFTH}-timesliced",
        "gpu-share.dev/share-8000m-whole",
        "gpu-share.dev/share-x",
        IMPLICIT,
    ):
        yield by_webhook(f"a limit of {resource}", code, pod(None, limited("main", "1", resource)))
        beside = pod("0.1", container(), limited("b", "1", resource))
        yield by_webhook(f"{resource} in a container beside the share", code, beside)
    init = limited("i", "1", FIFTH)
    yield by_webhook("a size of DRA in an init container", code, pod("0.1", initContainers=[init]))
    requested = container(resources={"requests": {FIFTH: "1"}})
    yield by_webhook("a request of a size of DRA without a limit", code, pod(None, requested))
    yield by_webhook("a forged grant of a size of DRA with its limit", code, forged_dra())


def _more_than_allowed() -> Iterator[Attempt]:
    above, code = "ShareAboveMaximum", "ConflictingRequest"
    small = f"{BY_DRA}\nshare: {{maximum: '0.2'}}"
    yield by_webhook("half a GPU by its size", above, pod(None, limited("main", "1", HALF)), small)
    two = pod(None, limited("main", "2", FIFTH))
    yield by_webhook("two devices of a fifth", "ShareMalformed", two, small)
    yield by_webhook(
        "a size that no grid has", "ShareMalformed", pod(None, limited("main", 1, f"{FIFTH[:-2]}1m")), BY_DRA
    )
    for resource in (IMPLICIT, f"{FIFTH}-timesliced", "gpu-share.dev/share-1000m-whole"):
        on = pod(None, limited("main", "1", resource))
        yield by_webhook(f"{resource} where tenths under MPS are allocated by DRA", code, on, BY_DRA)
    both = container(resources={"limits": {FIFTH: "1", VGPU: "2"}})
    yield by_webhook("a fifth as a size and as vGPUs", code, pod(None, both), BY_DRA)
    sizes = container(resources={"limits": {FIFTH: "1", HALF: "1"}})
    yield by_webhook("two sizes in one container", code, pod(None, sizes), BY_DRA)
    vendor = limited("b", 1, "nvidia.com/gpu")
    yield by_webhook("a vendor's GPU beside a size of DRA", code, pod("0.2", container(), vendor), BY_DRA)
    five = pod(None, *[limited(f"c{number}", "1", FIFTH) for number in range(6)])
    yield by_webhook("six fifths in one pod", "PodShareAboveMaximum", five, BY_DRA)
    kept = pod(None, limited("a", 1, HALF), initContainers=[limited("i", 1, "gpu-share.dev/share-600m")])
    yield by_webhook("an init container whose share the claim keeps", "PodShareAboveMaximum", kept, BY_DRA)


def _in_the_api_server() -> Iterator[Attempt]:
    none, limits = "granted it none", "not what gpu-share.dev/grant says"
    for resource in (FIFTH, IMPLICIT, "gpu-share.dev/share-1000m-whole"):
        on = pod(None, limited("main", "1", resource))
        yield by_policy(f"{resource} by limit while the webhook is down", none, on)
    init = pod(None, initContainers=[limited("i", "1", FIFTH)])
    yield by_policy("a size of DRA in an init container while the webhook is down", none, init)
    alone = pod(None, container(resources={"requests": {FIFTH: "1"}}))
    yield by_policy("a request of a size of DRA while the webhook is down", none, alone)
    yield by_policy("half a GPU beside a forged grant of a fifth", limits, forged_dra(HALF))
    yield by_policy("two devices beside a forged grant of one", limits, forged_dra(quantity="2"))
    yield by_policy("a class by its other name beside a forged grant", limits, forged_dra(IMPLICIT))
    yield by_policy("a forged grant of a class by its other name", NOT_OURS, forged_dra(IMPLICIT, IMPLICIT))
    sliced = f"{FIFTH}-timesliced"
    yield by_policy("a time-sliced share granted as one under MPS", NOT_OURS, forged_dra(sliced, sliced))
    whole = "gpu-share.dev/share-1000m-whole"
    yield by_policy("a whole GPU granted as a share under MPS, for hostIPC", NOT_OURS, forged_dra(whole, whole))
    both = forged()
    both["spec"]["containers"][0]["resources"]["limits"][FIFTH] = "1"
    yield by_policy("a size of DRA that another webhook adds beside vGPUs", limits, both)
    more = forged_dra()
    more["spec"]["containers"][0]["resources"]["limits"][VGPU] = "2"
    yield by_policy("vGPUs that another webhook adds beside a size of DRA", limits, more)
    vgpus = forged()
    vgpus["metadata"]["annotations"]["gpu-share.dev/grant"] = DRA_GRANT % FIFTH
    yield by_policy("vGPUs with a forged grant of DRA", limits, vgpus)
    size = forged_dra()
    size["metadata"]["annotations"]["gpu-share.dev/grant"] = GRANT % (1, "0.1")
    yield by_policy("a size of DRA with a forged grant of vGPUs", limits, size)
    asking = forged_dra()
    asking["spec"]["containers"].append(container("b", resources={"requests": {FIFTH: "1"}}))
    yield by_policy("a request of a size alone beside a forged grant", "requests another number", asking)
    second = with_spec(forged_dra(), initContainers=[limited("i", "1", FIFTH)])
    yield by_policy("an init container with a size beside a forged grant", NOT_OURS, second)
