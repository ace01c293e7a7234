"""
A grant to JSON Patch operations, by hand and against the object that was received.

The API server applies them as RFC 6902 says and rejects the pod if one does not fit: `add` needs its parent, so every
parent that is missing is created first. What the pod already has is left alone, so a second pass adds nothing.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from policies.changes import (
    AddVariable,
    AppendArgument,
    Change,
    RemoveMount,
    RemoveVariable,
    ReplaceArgument,
    ReplaceVariable,
    SetMountField,
)
from policies.contract import DRA, GRANT_ANNOTATION, HIDES, MPS_VOLUME, PARTITION, SHARED_LABEL
from policies.grant import Added, ContainerGrant, Grant, Hidden
from policies.paths import normal
from policies.placement import missing_tolerations
from policies.pod import NO_METADATA, Container, Pod, Slot
from policies.quantity import whole
from policies.share import milli_text


class Operation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One operation of a JSON Patch."""

    op: str  # add, replace or remove
    path: str  # JSON pointer
    value: Any = msgspec.UNSET


def operations(pod: Pod, grant: Grant) -> list[Operation]:
    """List what turns *pod* into the granted pod; empty if it is that already."""
    made: list[Operation] = []
    needs_volume = False
    _read_only(made, grant.read_only)
    for container in grant.containers:
        attach = grant.attaches_in_pod and not _is_mounted(container.slot.container, grant.pipe_directory)
        needs_volume |= attach
        _container(made, container, grant, attach=attach)
    for hidden in grant.hidden:
        _hidden(made, hidden)
    if grant.attaches_in_pod:
        _attach(made, pod, grant, needs_volume=needs_volume)
    if grant.policy.places:
        _placement(made, pod, grant)
    if pod.metadata is NO_METADATA:
        made.append(Operation("add", "/metadata", {}))
    _set(made, "/metadata/annotations", pod.metadata.annotations, GRANT_ANNOTATION, grant_text(grant))
    _set(made, "/metadata/labels", pod.metadata.labels, SHARED_LABEL, "true")
    return made


def hiding(added: Added) -> list[Operation]:
    """List what hides the GPUs from ephemeral containers."""
    made: list[Operation] = []
    _read_only(made, added.read_only)
    for hidden in added.hidden:
        _hidden(made, hidden)
    return made


def grant_text(grant: Grant) -> str:
    """
    Write the grant as the pod carries it.

    `"<container>":{"vgpus":<n>,` stands in it once for each container that holds a share and for no other, so that a
    policy that cannot parse JSON can compare it with the limits; by DRA `"<container>":{"resource":"<resource>",`, and
    with partitions `"<container>":{"resource":"<resource>","count":<n>,`. What a framework is told comes last, where it
    is not the share.
    """
    if grant.strategy == PARTITION:
        return _partition_text(grant)
    by_dra = grant.allocation == DRA
    containers = {
        one.slot.name: {
            **({"resource": one.resource} if by_dra else {"vgpus": one.vgpus}),
            "share": one.share_text,
            **({} if by_dra else {"of": grant.vgpus_per_gpu}),
            **({} if one.tells_its_share else {"memory": milli_text(one.fraction_milli)}),
        }
        for one in grant.containers
    }
    attach = {"attach": "pod" if grant.attaches_in_pod else "node"} if grant.strategy == "mps" else {}
    content = {
        "policy": grant.policy.name,
        "strategy": grant.strategy,
        **attach,
        **({"allocation": DRA} if by_dra else {"resource": grant.resource}),
        "containers": containers,
    }
    return msgspec.json.encode(content).decode()


def _partition_text(grant: Grant) -> str:
    containers = {
        one.slot.name: {"resource": one.resource, "count": one.quantity, "share": one.share_text}
        for one in grant.containers
    }
    named = {"policy": grant.policy.name, "strategy": grant.strategy, "partition": grant.partition}
    return msgspec.json.encode({**named, "containers": containers}).decode()


@lru_cache(1024)  # the keys are ours and the policies'
def escaped(key: str) -> str:
    """Write *key* as one step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _container(made: list[Operation], granted: ContainerGrant, grant: Grant, *, attach: bool) -> None:
    slot = granted.slot
    path = _path(slot)
    _resources(made, granted)
    # Several settings in one variable are one change.
    lowered: list[Change] = list(dict.fromkeys([one.change for one in granted.advice.own if one.change is not None]))
    if granted.literals:
        lowered += [one for one in granted.literals if not _is_replaced(one, lowered)]
    _changes(made, path, slot.container, [*lowered, *granted.removed, *granted.unmounted, *granted.advice.changes])
    if attach:
        mount = {"name": MPS_VOLUME, "mountPath": grant.pipe_directory, "readOnly": True}
        _append(made, f"{path}/volumeMounts", slot.container.volume_mounts, [mount])


def _is_replaced(literal: ReplaceArgument, by: list[Change]) -> bool:
    places = [(one.field, one.index) for one in by if isinstance(one, ReplaceArgument)]
    return (literal.field, literal.index) in places


def _hidden(made: list[Operation], hidden: Hidden) -> None:
    container = hidden.slot.container
    changes: list[Change] = list(hidden.removed)
    removed = {one.index for one in hidden.removed}
    kept = {one.name for i, one in enumerate(container.env or ()) if i not in removed}
    changes += [AddVariable(name, HIDES[name]) for name in hidden.variables if name not in kept]
    _changes(made, _path(hidden.slot), container, changes)


def _read_only(made: list[Operation], mounts: Iterable[tuple[Slot, SetMountField]]) -> None:
    """Come before all that moves indices. Where the runtime cannot do it, the mount is read-only at its top."""
    for slot, change in mounts:
        made.append(Operation("add", f"{_path(slot)}/volumeMounts/{change.index}/{change.field}", change.value))


def _resources(made: list[Operation], granted: ContainerGrant) -> None:
    path = f"{_path(granted.slot)}/resources"
    count = str(granted.quantity)
    resources, resource = granted.slot.container.resources, granted.resource
    if resources is None:
        made.append(Operation("add", path, {"limits": {resource: count}, "requests": {resource: count}}))
        return
    for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if amounts and granted.replaced in amounts:
            made.append(Operation("remove", f"{path}/{field}/{escaped(granted.replaced)}"))
        # The same number may be written otherwise (2, "2"); it agrees, or there would be no grant.
        if amounts is None or resource not in amounts or whole(amounts[resource]) == 0:
            _set(made, f"{path}/{field}", amounts, resource, count)


def _changes(made: list[Operation], path: str, container: Container, changes: list[Change]) -> None:
    """Replace first, while the indices hold; then remove from the end; then append."""
    if not changes:
        return
    removed = []
    arguments: list[str] = []
    variables: list[dict[str, str]] = []
    for change in changes:
        match change:  # what most pods need comes first
            case AppendArgument(text):
                arguments.append(text)
            case AddVariable(name, value):
                variables.append({"name": name, "value": value})
            case ReplaceArgument(field, index, text):
                made.append(Operation("replace", f"{path}/{field}/{index}", text))
            case ReplaceVariable(index, name, value):
                made.append(Operation("replace", f"{path}/env/{index}", {"name": name, "value": value}))
            case RemoveVariable(index):
                removed.append(("env", index))
            case RemoveMount(index):
                removed.append(("volumeMounts", index))
    if removed:
        made.extend(Operation("remove", f"{path}/{field}/{index}") for field, index in sorted(removed, reverse=True))
    _append(made, f"{path}/args", container.args, arguments)
    _append(made, f"{path}/env", container.env, variables)


def _attach(made: list[Operation], pod: Pod, grant: Grant, *, needs_volume: bool) -> None:
    if pod.spec.host_ipc is not True:
        made.append(Operation("add", "/spec/hostIPC", value=True))
    host_path = {"path": grant.pipe_directory, "type": "Directory"}
    ours = {"name": MPS_VOLUME, "hostPath": host_path}
    for index, volume in enumerate(pod.spec.volumes or ()):
        if volume.name == MPS_VOLUME:
            if volume.host_path is None or msgspec.to_builtins(volume.host_path) != host_path:
                made.append(Operation("replace", f"/spec/volumes/{index}", ours))
            return
    if needs_volume:
        _append(made, "/spec/volumes", pod.spec.volumes, [ours])


def _is_mounted(container: Container, pipe_directory: str) -> bool:
    return any(normal(mount.mount_path) == pipe_directory for mount in container.volume_mounts or ())


def _placement(made: list[Operation], pod: Pod, grant: Grant) -> None:
    placement, spec = grant.policy.policy.placement, pod.spec
    if placement.node_selector and spec.node_selector is None:
        made.append(Operation("add", "/spec/nodeSelector", placement.node_selector))
    else:
        for key, value in placement.node_selector.items():
            _set(made, "/spec/nodeSelector", spec.node_selector, key, value)
    missing = [msgspec.to_builtins(one) for one in missing_tolerations(pod, placement.tolerations)]
    _append(made, "/spec/tolerations", spec.tolerations, missing)
    for field, said, wanted in (
        ("runtimeClassName", spec.runtime_class_name, placement.runtime_class_name),
        ("schedulerName", spec.scheduler_name, placement.scheduler_name),
    ):
        if wanted is not None and said != wanted:
            made.append(Operation("add", f"/spec/{field}", wanted))


def _set(made: list[Operation], path: str, present: dict[str, Any] | None, key: str, value: str) -> None:
    """Set a key of the mapping that is *present* at a path, or make one."""
    if present is None:
        made.append(Operation("add", path, {key: value}))
    elif present.get(key) != value:
        made.append(Operation("add", f"{path}/{escaped(key)}", value))


def _append(made: list[Operation], path: str, present: list[Any] | None, items: list[Any]) -> None:
    if not items:
        return
    if present is None:
        made.append(Operation("add", path, items))
        return
    end = f"{path}/-"
    for item in items:
        made.append(Operation("add", end, item))  # noqa: PERF401 - most often it is one


def _path(slot: Slot) -> str:
    return f"/spec/{slot.group}/{slot.index}"
