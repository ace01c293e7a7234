"""What a claim asks of this node: checked against what the scheduler may have written, and nobody else."""

from collections.abc import Mapping
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
class Wanted:
    """A device for one request of a claim."""

    request: str
    device: Device


def wanted_devices(claim: Any, *, uid: str, node: str, devices: Mapping[str, Device]) -> tuple[Wanted, ...]:
    """
    Read which of this node's *devices*, by name, a claim has been given.

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
    return tuple(_wanted(read, one, node=node, devices=devices) for one in results)


def _results(claim: _Claim) -> list[_Result]:
    allocation = claim.status.allocation
    return (allocation.devices.results or []) if allocation is not None else []


def _check_origin(claim: _Claim) -> None:
    """See that the scheduler made it for one pod's extended resources: another has passed no policy of a namespace."""
    if (claim.metadata.annotations or {}).get(_EXTENDED_RESOURCE) != "true":
        raise ClaimError("claims of gpu-share are made by the scheduler alone: ask for a share by annotation")
    owners = {owner.uid for owner in claim.metadata.owner_references or ()}
    if any(consumer.uid not in owners for consumer in claim.status.reserved_for or ()):
        raise ClaimError("it is another pod's: ask for a share of this pod's own, by annotation")


def _wanted(claim: _Claim, result: _Result, *, node: str, devices: Mapping[str, Device]) -> Wanted:
    if result.pool != node:
        raise ClaimError(f"its device is of the node {result.pool}, this is {node}: give the plugin its --node-name")
    if result.admin_access:
        raise ClaimError("a share is not given by adminAccess: ask for one by annotation")
    device = devices.get(result.device)
    if device is None:
        raise ClaimError(f"the device {result.device} is gone from this node: delete the pod, it is scheduled again")
    request = result.request.partition("/")[0]
    asked = next((one for one in claim.spec.devices.requests or () if one.name == request), None)
    class_name = asked.exactly.device_class_name if asked is not None and asked.exactly is not None else ""
    if class_name != device.size.device_class:
        raise ClaimError(f"it asks for the class {class_name!r} and has a device of {device.size.device_class}")
    return Wanted(request=request, device=device)
