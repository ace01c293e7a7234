"""What a claim asks of this node: checked against what the scheduler may have written, and nobody else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from plugin.dra.devices import Device
from plugin.errors import ClaimError
from policies.contract import DRIVER
from program.structs import decoder

_EXTENDED_RESOURCE = "resource.kubernetes.io/extended-resource-claim"


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A mapping of the API. Unknown fields are none of ours."""


class _Owner(_Part, frozen=True):
    uid: str
    name: str = ""


class _Metadata(_Part, frozen=True):
    uid: str
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Exactly(_Part, frozen=True):
    device_class_name: str = ""


class _Request(_Part, frozen=True):
    name: str
    exactly: _Exactly | None = None


class _Devices(_Part, frozen=True):
    requests: list[_Request] | None = None


class _Spec(_Part, frozen=True):
    devices: _Devices = _Devices()


class _Result(_Part, frozen=True):
    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None


class _Results(_Part, frozen=True):
    results: list[_Result] | None = None


class _Allocation(_Part, frozen=True):
    devices: _Results = _Results()


class _Consumer(_Part, frozen=True):
    uid: str


class _Status(_Part, frozen=True):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None


class _Claim(_Part, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


decoder(_Claim)  # the kubelet asks in several threads


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPod:
    """The pod that a claim was made for; empty where the claim does not say it."""

    name: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """What the scheduler has given to one request of a claim."""

    request: str
    name: str  # of the device
    device_class: str  # that was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A device for one request of a claim."""

    request: str
    device: Device


def allocated_devices(claim: Any, *, uid: str, node: str) -> tuple[OfPod, tuple[Allocated, ...]]:
    """
    Read which devices of this node a claim has been given, whatever devices there are, and for which pod.

    Raises:
        ClaimError: If it is not the claim that the kubelet means, is not allocated here, or was not made by the
            scheduler for a pod that asks for shares.
    """
    try:
        read = msgspec.convert(claim, _Claim)
    except msgspec.ValidationError as error:
        raise ClaimError(f"the API server's claim cannot be read: {error}") from error
    if read.metadata.uid != uid:
        raise ClaimError(f"its UID is {read.metadata.uid}, not {uid}: it was deleted and made anew: delete the pod")
    results = [one for one in _results(read) if one.driver == DRIVER]
    if not results:
        raise ClaimError(f"no device of {DRIVER} is allocated to it: delete the pod, it is then scheduled again")
    _check_origin(read)
    requests = [one.request for one in results]
    if len(set(requests)) < len(requests):
        raise ClaimError("a container holds one device, a request of this claim has several: ask by a share annotation")
    return _pod(read), tuple(_allocated(read, one, node=node) for one in results)


def wanted_devices(allocated: Sequence[Allocated], devices: Mapping[str, Device]) -> tuple[Wanted, ...]:
    """
    Find what was allocated among this node's *devices*, by name.

    Raises:
        ClaimError: If a device is gone, is of another class by now, is void, or one of its GPUs is gone.
    """
    return tuple(_wanted(one, devices) for one in allocated)


def _results(claim: _Claim) -> list[_Result]:
    allocation = claim.status.allocation
    return (allocation.devices.results or []) if allocation is not None else []


def _pod(claim: _Claim) -> OfPod:
    """Say which pod may use it; before one may, which owns it."""
    users = {consumer.uid for consumer in claim.status.reserved_for or ()}
    owners = [owner for owner in claim.metadata.owner_references or () if not users or owner.uid in users]
    return OfPod(name=owners[0].name, uid=owners[0].uid) if len(owners) == 1 else OfPod()


def _check_origin(claim: _Claim) -> None:
    """See that the scheduler made it for one pod's extended resources: another has passed no policy of a namespace."""
    if (claim.metadata.annotations or {}).get(_EXTENDED_RESOURCE) != "true":
        raise ClaimError("claims of gpu-share are made by the scheduler alone: ask for a share by annotation")
    owners = {owner.uid for owner in claim.metadata.owner_references or ()}
    if any(consumer.uid not in owners for consumer in claim.status.reserved_for or ()):
        raise ClaimError("it is another pod's: ask for a share of this pod's own, by annotation")


def _allocated(claim: _Claim, result: _Result, *, node: str) -> Allocated:
    if result.pool != node:
        raise ClaimError(f"its device is of the node {result.pool}, this is {node}: give the plugin its --node-name")
    if result.admin_access:
        raise ClaimError("a share is not given by adminAccess: ask for one by annotation")
    request = result.request.partition("/")[0]
    asked = next((one for one in claim.spec.devices.requests or () if one.name == request), None)
    class_name = asked.exactly.device_class_name if asked is not None and asked.exactly is not None else ""
    return Allocated(request=request, name=result.device, device_class=class_name)


def _wanted(allocated: Allocated, devices: Mapping[str, Device]) -> Wanted:
    device = devices.get(allocated.name)
    if device is None:
        raise ClaimError(f"the device {allocated.name} is gone from this node: delete the pod, it is scheduled again")
    if allocated.device_class != device.size.device_class:
        raise ClaimError(
            f"it asks for the class {allocated.device_class!r} and has a device of {device.size.device_class}: the GPU "
            "is another device in _cluster.yaml by now: delete the pod, it is scheduled again"
        )
    if device.missing:
        gone = " and ".join(device.missing)
        raise ClaimError(f"{gone} is gone from this node: delete the pod, it is scheduled again")
    if device.is_void:
        raise ClaimError(
            f"its device is of {device.size.device_class}, and the GPU is shared otherwise, or is another device, in "
            "_cluster.yaml by now: delete the pod, it is scheduled again"
        )
    return Wanted(request=allocated.request, device=device)
