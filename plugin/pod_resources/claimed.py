"""
Which devices of DRA each container of a pod has.

All containers of a pod with a share have theirs by one claim, and the kubelet names the whole claim for each of them.
"""

import re
from collections.abc import Sequence

from plugin.pod_resources.v1 import api_pb2
from policies.contract import DRIVER

# A request of such a claim, as the scheduler names it: by the number of its container, init containers first. A CDI
# device of ours ends with it.
_REQUEST = re.compile(r"-container-([0-9]{1,5})-request-[0-9]{1,5}\Z", re.ASCII)

_Device = tuple[int | None, str]  # the number of its container, if it is known, and its name


def claimed(containers: Sequence[api_pb2.ContainerResources]) -> list[tuple[str, ...]]:
    """
    Name the devices of DRA of each of a pod's *containers*, in the pod's order, each device for one of them alone.

    The kubelet leaves out init containers, unless they are sidecars: their devices count as the first container's. One
    behind a sidecar, or that a later container of its size takes over, may be told of another one; the sums are right.
    Where the kubelet does not say which device is for which request, each container has all that is named for it.
    """
    named = [_named(one) for one in containers]
    holders = [place for place, devices in enumerate(named) if devices]
    together = sorted(set().union(*named), key=lambda one: (one[0] is None, one))
    given = [tuple(sorted(name for _, name in devices)) for devices in named]
    is_one_claim = all(len(named[place]) == len(together) for place in holders)
    are_all_numbered = len({number for number, _ in together} - {None}) == len(together)
    if not (holders and is_one_claim and are_all_numbered and len(together) >= len(holders)):
        return given
    others = together[: -len(holders)]
    for place, (_, name) in zip(holders, together[-len(holders) :], strict=True):
        given[place] = (name,)
    given[holders[0]] = tuple(sorted((*given[holders[0]], *(name for _, name in others))))
    return given


def claims(container: api_pb2.ContainerResources) -> frozenset[str]:
    """Name the claims by which a container has devices of ours."""
    return frozenset(
        f"{one.claim_namespace}/{one.claim_name}"
        for one in container.dynamic_resources
        if any(given.driver_name == DRIVER for given in one.claim_resources)
    )


def _named(container: api_pb2.ContainerResources) -> set[_Device]:
    """Name what a container is said to have."""
    given = (one for dynamic in container.dynamic_resources for one in dynamic.claim_resources)
    return {(_number(one), one.device_name) for one in given if one.driver_name == DRIVER}


def _number(device: api_pb2.ClaimResource) -> int | None:
    """Read it from the last of our CDI devices: Kubernetes 1.36 puts those of the devices before it in front."""
    found = [match for one in device.cdi_devices if (match := _REQUEST.search(one.name))]
    return int(found[-1][1]) if found else None
