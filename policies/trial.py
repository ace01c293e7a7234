"""What `mode: warn` makes of a denial: the pod is admitted unchanged, with what it asks for by limits."""

from collections.abc import Iterator, Sequence

from policies.cluster import Cluster
from policies.errors import quoted
from policies.grant import Denied, Untouched
from policies.kind import device_resources
from policies.pod import Slot, named
from policies.quantity import whole
from policies.sizes import read_size


def denied_or_warned(denied: Denied, containers: Sequence[Slot], cluster: Cluster) -> Denied | Untouched:
    """Deny, or warn where the policy says so; *containers* are empty where the pod was not read."""
    policy = denied.policy
    if policy.policy.mode == "enforce":
        return denied
    reason = f"mode is warn ({policy.source('mode')})"
    warnings = [f"would be denied with {denied.deny.code}: {denied.message}", *kept_limits(containers, cluster)]
    return Untouched(reason, tuple(warnings), denied)


def kept_limits(containers: Sequence[Slot], cluster: Cluster) -> Iterator[str]:
    """Yield a sentence about the first container whose limit gets it a share, since the node decides on nothing."""
    for slot in containers:
        resources = device_resources(slot)
        for name, quantity in ((resources.limits if resources else None) or {}).items():
            if cluster.is_ours(name) and whole(quantity) != 0:
                kept = f"{named(slot)} keeps its limit {quoted(name, 80)[1:-1]}"
                if read_size(name) is not None and whole(quantity) != 1:
                    yield f"{kept}, and no node serves more than one of it"
                else:
                    yield (
                        f"{kept}, and gets that share unchecked and without memory settings: remove the limit where it "
                        "should get none"
                    )
                return
