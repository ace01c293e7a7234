"""
The section `sharing` of NVIDIA's configuration: time-slicing or MPS, and into how many replicas.

As api/config/v1/replicas.go of https://github.com/NVIDIA/k8s-device-plugin reads it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from policies.contract import MPS, TIME_SLICING, VgpuStrategy
from policies.errors import quoted
from policies.migration.findings import Becomes, Finding, always, decide, ignored, none, same
from policies.migration.units import Unit
from policies.migration.written import Place
from policies.reading.document import Node
from policies.reading.wording import shown

WHOLE_GPU: Final = "nvidia.com/gpu"
_PREFIX = "nvidia.com/"
_STRATEGY_OF: dict[str, VgpuStrategy] = {"sharing.mps": MPS, "sharing.timeSlicing": TIME_SLICING}
IN_ORDER: Final = tuple(_STRATEGY_OF)  # NVIDIA's plugin takes the first that is there

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_NAME = 63
_FEWEST_REPLICAS = 2
_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_RESOURCE_KEYS = ("name", "replicas", "rename", "devices")
_DEVICE = re.compile(
    r"[0-9]+(:[0-9]+)?|(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|MIG-GPU-[-0-9a-f]{36}/[0-9]+/[0-9]+",
    re.ASCII | re.IGNORECASE,
)


class Resource(msgspec.Struct, frozen=True):
    """An entry of `resources`."""

    place: str  # its key, such as `sharing.mps.resources[0]`
    name: str  # with its prefix
    replicas: int
    replicas_line: int  # in the file, as all lines here


class Replicated(msgspec.Struct):
    """One of the two ways to share."""

    place: str  # its key
    strategy: VgpuStrategy
    line: int
    resources: list[Resource]
    findings: list[Finding]  # about what does not depend on other configurations
    renames: bool = False
    one_only: bool | None = None  # failRequestsGreaterThanOne, as written
    one_only_line: int = 0

    @property
    def whole_gpus(self) -> Resource | None:
        """The entry that counts for whole GPUs: of several, NVIDIA's plugin makes as many replicas as the largest."""
        named = [one for one in self.resources if one.name == WHOLE_GPU]
        return max(named, key=lambda one: one.replicas) if named else None

    @property
    def holds_one(self) -> bool:
        """Whether a container may have one replica only; under MPS that is the default."""
        return self.strategy == MPS if self.one_only is None else self.one_only


def read_replicated(path: str, node: Node, place: Place) -> Replicated:
    """Read one of the two ways to share; its faults are added to those of *place*."""
    made = Replicated(path, _STRATEGY_OF[path], place.line(node), [], [])
    if not isinstance(node.value, dict):
        place.fault(
            path, node, f"expected a mapping with resources, got {shown(node.value)}: add resources, or remove it"
        )
        return made
    for key, child in node.fields.items():
        here = f"{path}.{quoted(key, 80)[1:-1]}"
        if key == "resources":
            continue
        if key in _KEYS and not isinstance(child.value, bool | None):
            place.fault(here, child, f"expected true or false, got {shown(child.value)}: write one of the two")
        elif key == "renameByDefault":
            made.renames = child.value is True
            made.findings.append(_finding(place, here, child, _renaming(made.renames)))
        elif key == "failRequestsGreaterThanOne":
            made.one_only, made.one_only_line = child.value, place.line(child)
        else:
            _unknown(here, child, _near(key, _KEYS), place, made)
    _read_resources(path, node, place, made)
    return made


def _read_resources(path: str, node: Node, place: Place, made: Replicated) -> None:
    resources = node.fields.get("resources")
    if resources is None or not isinstance(resources.value, list) or not resources.value:
        got = "nothing" if resources is None else shown(resources.value)
        place.fault(
            f"{path}.resources", resources or node, f"expected a list with name and replicas, got {got}: add one"
        )
        return
    for index, child in enumerate(resources.items):
        one = _resource(f"{path}.resources[{index}]", child, place, made)
        if one is not None:
            made.resources.append(one)


def _resource(path: str, node: Node, place: Place, made: Replicated) -> Resource | None:
    fields = node.fields if isinstance(node.value, dict) else {}
    for key in ("name", "replicas"):
        if key not in fields:
            place.fault(f"{path}.{key}", node, f"is missing: add it, as in name: {WHOLE_GPU}, replicas: 10")
    for key, child in fields.items():
        here = f"{path}.{quoted(key, 80)[1:-1]}"
        if key in ("rename", "devices"):
            made.findings.append(_finding(place, here, child, _without_effect(key, child, here, place)))
        elif key not in _RESOURCE_KEYS:
            _unknown(here, child, _near(key, _RESOURCE_KEYS), place, made)
    if not {"name", "replicas"} <= fields.keys():
        return None
    name, replicas = _name(fields["name"], path, place), fields["replicas"]
    if type(replicas.value) is not int or replicas.value < _FEWEST_REPLICAS:
        message = (
            f"expected a whole number from {_FEWEST_REPLICAS} on, got {shown(replicas.value)}: write how many replicas"
        )
        place.fault(f"{path}.replicas", replicas, message)
        return None
    if name is None:
        return None
    one = Resource(path, name, replicas.value, place.line(replicas))
    made.findings.append(_finding(place, f"{path}.name", fields["name"], _becomes_name(one, made)))
    return one


def _name(node: Node, path: str, place: Place) -> str | None:
    name = node.value
    if isinstance(name, str) and not name.startswith(_PREFIX):
        name = f"{_PREFIX}{name}"
    bare = name.removeprefix(_PREFIX) if isinstance(name, str) else ""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not _SUBDOMAIN.fullmatch(bare):
        message = (
            f"expected a resource of at most {_LONGEST_NAME} characters, got {shown(node.value)}: write {WHOLE_GPU}"
        )
        place.fault(f"{path}.name", node, message)
        return None
    return name


def _becomes_name(one: Resource, made: Replicated) -> Becomes:
    if one.name == WHOLE_GPU:
        return same(f"these GPUs are advertised as vGPUs: strategy: {made.strategy}")
    if one.name.startswith(f"{_PREFIX}mig-"):
        told = (
            "with mig: shared in nodes of _cluster.yaml instances are shared by MPS, as gpu-share.dev/vgpu-mig-..., "
            "and strategy: partition grants whole ones of NVIDIA's plugin"
        )
        return none(told)
    return ignored(f"NVIDIA's plugin has no devices of this name: it has {WHOLE_GPU} and {_PREFIX}mig-... alone")


def _renaming(renames: bool) -> Becomes:  # noqa: FBT001 - the value of the key
    was = f"{WHOLE_GPU}.shared" if renames else WHOLE_GPU
    return Becomes("pods", f"pods asked for {was}; here they ask for a share, {WHOLE_GPU} stays NVIDIA's")


def _without_effect(key: str, node: Node, path: str, place: Place) -> Becomes:
    if key == "rename":
        if not isinstance(node.value, str | None):
            place.fault(path, node, f"expected a string, got {shown(node.value)}: put it in quotes, or remove it")
        return ignored("NVIDIA's plugin warns that it does not support it; here resourceNames names all resources")
    if node.value == "all":
        return always("all GPUs of a node are shared, unless `nodes` says otherwise")
    if not _are_devices(node.value):
        place.fault(path, node, f"expected all, a number of GPUs or a list of them, got {shown(node.value)}: write all")
    return ignored(
        "NVIDIA's plugin warns that it does not support it, and shares all GPUs; here `nodes` can select some, as in "
        f"{{node: NAME, indexes: [0, 1], offer: {_STRATEGY_OF[path.partition('.resources')[0]]}}}"
    )


def _are_devices(value: Any) -> bool:
    if isinstance(value, list):
        return all(
            (type(one) is int and one >= 0) or (isinstance(one, str) and _DEVICE.fullmatch(one)) for one in value
        )
    return type(value) is int and value > 0


def _unknown(path: str, node: Node, near: str | None, place: Place, made: Replicated) -> None:
    """Report a key that NVIDIA's plugin does not know; *near* is how it is written, if only the case differs."""
    if near is not None:
        place.fault(path, node, f"unknown key: write {near}")
    else:
        told = ignored("NVIDIA's plugin does not know this key, and ignores it")
        made.findings.append(_finding(place, path, node, told))


def _near(key: str, known: tuple[str, ...]) -> str | None:
    return next((one for one in known if one.lower() == key.lower()), None)


def _finding(place: Place, key: str, node: Node, becomes: Becomes) -> Finding:
    return Finding(place.written.name, key, place.line(node), shown(node.value), *becomes)


def findings_of(name: str, made: Replicated, unit: Unit | None, *, in_force: bool) -> Iterator[Finding]:
    """
    Yield what became of one way to share; *in_force*: NVIDIA's plugin shares by it.

    *unit* is what one replica of a whole GPU becomes; None if there are none.
    """
    if not in_force:
        told = ignored("NVIDIA's plugin shares by sharing.mps where both are written")
        yield Finding(name, made.place, made.line, "a mapping", *told)
        return
    yield from made.findings
    yield _one_only(name, made)
    counted = made.whole_gpus
    for one in made.resources:
        told = _replicas(one, counted, unit) if unit and counted else none("see its name")
        yield Finding(name, f"{one.place}.replicas", one.replicas_line, str(one.replicas), *told)


def _replicas(one: Resource, counted: Resource, unit: Unit) -> Becomes:
    if one.name != WHOLE_GPU:
        return none("see its name")
    if counted is not one:
        return ignored(f"{counted.place} makes as many replicas of the same GPUs, or more")
    asks = f'pods that asked for one ask for gpu-share: "{unit.share}"'
    parts = f"{unit.vgpus} vGPU{'s' * (unit.vgpus > 1)} of {unit.vgpus_per_gpu}"
    if unit.is_exact:
        return same(f"vgpusPerGpu: {unit.vgpus_per_gpu}, one replica is {parts}, and {asks}")
    return decide(
        f"vgpusPerGpu: {unit.vgpus_per_gpu}, one replica becomes {parts}, not 1/{one.replicas} of a GPU, and {asks}"
    )


def _one_only(name: str, made: Replicated) -> Finding:
    key, line = f"{made.place}.failRequestsGreaterThanOne", made.one_only_line
    value = "not written" if made.one_only is None else shown(made.one_only)
    if made.holds_one:
        why = ", which is the default under MPS" if made.one_only is None else ""
        return Finding(name, key, line, value, *same(f"share.maximum is one replica{why}"))
    told = same('share.maximum: "1": a share is on one GPU, where NVIDIA\'s plugin may spread replicas over several')
    return Finding(name, key, line, value, *told)
