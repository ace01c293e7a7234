"""
Devices to the ResourceSlices that the API server keeps, and whether two of them say the same.

A counter of each GPU counts its parts, so that devices which overlap are never allocated together.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import ceil, lcm
from secrets import token_hex
from typing import Any

from plugin.dra.devices import Device
from plugin.shares.strategy import SharedGpu
from policies.contract import DRIVER, MILLI_PER_GPU, MPS, TIME_SLICING, WHOLE, SharingStrategy
from policies.quantity import whole
from policies.sizes import FINEST_GRID

# Limits of resource.k8s.io/v1 (types.go, Kubernetes 1.36).
_MOST_DEVICES = 64  # of a slice whose devices have counters or taints
_MOST_COUNTERS = 32  # of a counter set
_LONGEST_TEXT = 64  # characters of an attribute
_LONGEST_NAME = 253 - len("-01234567")  # with what makes another name of it
_ANOTHER = re.compile(r"-[0-9a-f]{8}$")

# Each share of each number of vGPUs is a whole number of them. By thousandths, shares of two numbers would add up to
# less than they are, and the scheduler allocates one too many, or to more: below nothing it allocates none of the node.
_PARTS_PER_GPU = lcm(*range(1, FINEST_GRID + 1), MILLI_PER_GPU)

UNHEALTHY_TAINT = f"{DRIVER}/unhealthy"
EARLIER_TAINT = f"{DRIVER}/earlier"  # it counts for its GPU, and nobody else gets it
OUTLIVED_TAINT = f"{DRIVER}/outlived"  # processes of a pod that is gone use what the scheduler takes for free
_MIB = 1 << 20
_ENFORCEMENT: dict[SharingStrategy, str] = {MPS: "mps", TIME_SLICING: "none", WHOLE: "exclusive"}
# Attribute to field, of several GPUs where all agree. The last is Kubernetes' own name for it.
_OF_GPUS = {
    "uuid": "uuid",
    "parentUUID": "parent_uuid",
    "profile": "profile",
    "model": "model",
    "architecture": "architecture",
    "resource.kubernetes.io/pcieRoot": "pcie_root",
}

Spec = dict[str, Any]


def slice_specs(
    devices: Sequence[Device], shared: Sequence[SharedGpu], *, node: str, driver_version: str
) -> tuple[Spec, ...]:
    """
    Write the specifications of a node's slices, but for the generation of their pool.

    Where there is no device, one slice says so: with none at all the node would look as if it had no driver.
    """
    gpus = sorted((one.gpu for one in shared), key=lambda gpu: gpu.index)
    # A device is in one set. MIG instances, which are in none with others, come last.
    in_order = sorted(gpus, key=lambda gpu: gpu.instance is not None)
    sets = {gpu.label: f"gpus-{number // _MOST_COUNTERS}" for number, gpu in enumerate(in_order)}
    written = [
        _device(device, sets, {one.gpu.uuid: one.why for one in shared}, driver_version)
        for device in devices
        if len({sets[gpu.label] for gpu in device.gpus}) == 1
    ]
    parts: list[Spec] = [{"sharedCounters": list(_counter_sets(sets))}] if sets else []
    parts += [
        {"devices": written[start : start + _MOST_DEVICES]} for start in range(0, len(written) or 1, _MOST_DEVICES)
    ]
    pool = {"name": node, "resourceSliceCount": len(parts)}
    return tuple({"driver": DRIVER, "nodeName": node, "pool": pool, **part} for part in parts)


def slice_name(node: str, number: int) -> str:
    """Name a slice: the scheduler looks at those of a pool by name, so the number says which comes first."""
    name = f"{node}-{DRIVER}-{number:03x}"
    return name if len(name) <= _LONGEST_NAME else f"{sha256(node.encode()).hexdigest()}-{DRIVER}-{number:03x}"


def another_name(name: str) -> str:
    """Name a slice where somebody else's has its *name*: nobody can foresee it and take that one too."""
    return f"{name}-{token_hex(4)}"


def first_name(name: str) -> str:
    """Return the name that a slice would have if that were nobody else's."""
    return _ANOTHER.sub("", name)


def is_same(spec: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two specifications say the same, though the API server may have written one in other words."""
    return bool(canonical(spec) == canonical(other))


def canonical(spec: Mapping[str, Any]) -> Any:
    """
    Write a specification in the one way in which it can be compared.

    The API server writes a quantity of 1000 as 1k, and adds to a taint when it was first there.
    """
    return _canonical({**spec, "pool": {**spec.get("pool", {}), "generation": 0}})


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: _canonical(one) for key, one in value.items() if key != "timeAdded"}
        if kept.keys() == {"value"} and isinstance(kept["value"], str):
            number = whole(kept["value"])
            return {"value": kept["value"] if number is None else number}
        return {key: one for key, one in kept.items() if one not in (None, [], {})}
    return [_canonical(one) for one in value] if isinstance(value, list | tuple) else value


def _counter_sets(sets: Mapping[str, str]) -> Iterator[Spec]:
    for name in dict.fromkeys(sets.values()):
        labels = [label for label, of in sets.items() if of == name]
        yield {"name": name, "counters": {one: {"value": str(_PARTS_PER_GPU)} for one in labels}}


def _device(device: Device, sets: Mapping[str, str], faults: Mapping[str, str], driver_version: str) -> Spec:
    counters = {gpu.label: {"value": str(ceil(device.part * _PARTS_PER_GPU))} for gpu in device.gpus}
    made: Spec = {
        "name": device.name,
        "attributes": _attributes(device, driver_version),
        "capacity": {"memory": {"value": f"{_memory_mib(device)}Mi"}},
        "consumesCounters": [{"counterSet": sets[device.gpus[0].label], "counters": counters}],
    }
    taints = [EARLIER_TAINT] if device.is_earlier else []
    if device.missing or any(faults.get(gpu.uuid) for gpu in device.gpus):
        taints.append(UNHEALTHY_TAINT)
    if device.is_outlived:
        taints.append(OUTLIVED_TAINT)
    if taints:
        made["taints"] = [{"key": key, "effect": "NoSchedule"} for key in taints]
    return made


def _memory_mib(device: Device) -> int:
    return min(gpu.memory_bytes for gpu in device.gpus) * device.milli_of_each // (MILLI_PER_GPU * _MIB)


def _attributes(device: Device, driver_version: str) -> Spec:
    texts: dict[str, str] = {
        "size": device.size.name,
        "strategy": device.size.strategy,
        "enforcement": _ENFORCEMENT[device.size.strategy],
        "driverVersion": driver_version,
    }
    for name, field in _OF_GPUS.items():
        values: set[str] = {getattr(gpu, field) for gpu in device.gpus}
        texts[name] = values.pop() if len(values) == 1 else ""
    numbers: dict[str, int] = {"gpus": len(device.gpus)}
    numa = {gpu.numa_node for gpu in device.gpus}
    if len(numa) == 1 and (node := numa.pop()) is not None:
        numbers["numaNode"] = node
    return {name: {"string": text[:_LONGEST_TEXT]} for name, text in texts.items() if text} | {
        name: {"int": number} for name, number in numbers.items()
    }
