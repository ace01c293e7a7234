"""Checks of allocation by DRA, where policies or nodes say so: what Kubernetes needs for it, and what must be there."""

from typing import Final

import msgspec

from console.doctor.installation import Installation
from console.doctor.kubernetes import OLDEST_DRA, version_in, written
from console.doctor.verdict import (
    Check,
    Verdict,
    cut,
    fail,
    not_applicable,
    not_seen,
    of_this_version,
    policies_of,
    unknown,
    unless_broken,
    warn,
)
from console.dra_objects import DeviceSelector
from console.seen import STATES
from policies.contract import DRA, DRIVER
from policies.device_classes import device_classes

_PAGE: Final = "install.md#by-dra-on-kubernetes-136"
# The table of docs/install.md.
_GATES: Final = ("DRAExtendedResource", "DRAPartitionableDevices", "DRADeviceTaints")
_UNUSED: Final = not_applicable("nothing is allocated by DRA")
_UNSAID: Final = "the API server does not say which feature gates are enabled"
_ENABLE: Final = "enable them in API server, scheduler and kubelets, or use allocation: device-plugin"


def is_used(on: Installation) -> bool:
    """Whether a policy or a node says that the scheduler allocates GPUs."""
    if any(gpu.allocation == DRA for node in on.seen.nodes for gpu in node.gpus):
        return True
    policies = (on.policies.default, *on.policies.namespaces.values()) if on.policies else ()
    return any(one.policy.allocation == DRA for one in policies)


def unless_used(made: Verdict, on: Installation) -> Verdict:
    """Say that it is not known where no policy that can be read says it: one that cannot may."""
    return made if is_used(on) else not_seen(on, "policies") or unless_broken(made, on)


def gates_for_later(on: Installation) -> Verdict:
    """See before an installation whether shares by DRA are possible."""
    number = version_in(on.version or "")
    if number is not None and number < OLDEST_DRA:
        needs = f"allocation: dra needs Kubernetes {written(OLDEST_DRA)}, and this is {on.version}"
        return not_applicable(f"{needs}; allocation: device-plugin needs none")
    if missing := not_seen(on, "gates"):
        return missing
    return warn(*_disabled(on), hint=f"{_ENABLE}: it needs none of them") if on.gates else unknown(_UNSAID)


def gates(on: Installation) -> Verdict:
    """See that the feature gates are enabled: by what the API server says of them, else by what it has kept."""
    if not is_used(on):
        return unless_used(_UNUSED, on)
    if on.gates:
        return fail(*_disabled(on), hint=_ENABLE)
    ours = [one for one in on.classes or () if one.metadata.name.endswith(f".{DRIVER}")]
    slices = [one for one in on.slices or () if one.spec.driver == DRIVER]
    dropped = []
    if ours and not any(one.spec.extended_resource_name for one in ours):
        dropped.append(f"the API server dropped extendedResourceName from DeviceClasses: {_GATES[0]} is disabled")
    if slices and not any(one.spec.shared_counters for one in slices):
        dropped.append(f"the API server dropped sharedCounters from ResourceSlices: {_GATES[1]} is disabled")
    if dropped:
        return fail(*dropped, hint=_ENABLE)
    return not_seen(on, "gates") or unknown(_UNSAID)


def classes(on: Installation) -> Verdict:
    """See that each size of a share has its DeviceClass, which selects the devices of that size and no others."""
    if not is_used(on):
        return unless_used(_UNUSED, on)
    policies = policies_of(on, "classes")
    if isinstance(policies, Verdict):
        return policies
    there = {str(one.metadata.name): one.spec for one in on.classes or ()}
    try:
        expected = device_classes(policies.cluster, policies.instances)
    except ValueError as error:  # no plugin takes such a number
        return fail(str(error), hint="write a number that fits into _cluster.yaml: gpu-share policy check")
    found, unlike = [], []
    for one in expected:
        name, resource = one["metadata"]["name"], one["spec"]["extendedResourceName"]
        seen = there.get(name)
        if seen is None:
            found.append(f"there is no DeviceClass {name}: pods that are granted {resource} stay Pending")
        elif seen.extended_resource_name != resource:
            said = seen.extended_resource_name or "no extended resource"
            found.append(f"the DeviceClass {name} is for {said}, expected {resource}")
        elif seen.selectors != msgspec.convert(one["spec"]["selectors"], tuple[DeviceSelector, ...]):
            unlike.append(f"the DeviceClass {name} does not select its devices as this version of gpu-share has it")
    hint = "gpu-share policy classes --policies DIRECTORY | kubectl apply -f -"
    made = fail(*cut(found), hint=hint) if found else of_this_version(fail(*cut(unlike), hint=hint), on)
    return unless_broken(made, on)  # it may name MIG instances, which have classes of their own


def slices(on: Installation) -> Verdict:
    """See that the scheduler knows the GPUs of each node that it allocates, as they are now."""
    states = {node.name: node.state for node in on.seen.nodes if node.state is not None}
    found = [
        f"{name} does not publish its ResourceSlices: the scheduler knows its GPUs as they were before, or not at all: "
        f"{state.slices_not_published}"
        for name, state in states.items()
        if state.slices_not_published
    ]
    by_dra = {name: one for name, one in states.items() if any(gpu.allocation == DRA for gpu in one.gpus)}
    if not (by_dra or found):
        return not_applicable("no node has GPUs that are allocated by DRA")
    if not found and (missing := not_seen(on, "slices")):
        return missing
    if on.slices is not None:
        there = {one.spec.node_name for one in on.slices if one.spec.driver == DRIVER}
        found += [
            f"{name} has no ResourceSlice of {DRIVER}; its plugin says: {state.handover}"
            for name, state in by_dra.items()
            if not (name in there or state.slices_not_published)
        ]
    return fail(
        *cut(found), hint="the plugin's log on that node says which right, feature gate or network path is missing"
    )


def _disabled(on: Installation) -> list[str]:
    """Name the gates that are disabled, or not there yet; one that is gone later is always enabled."""
    known, number = on.gates or {}, version_in(on.version or "")
    is_early = number is not None and number < OLDEST_DRA
    return [
        f"the feature gate {one} is disabled" if one in known else f"{on.version} has no feature gate {one}"
        for one in _GATES
        if known.get(one, not is_early) is False
    ]


_LATER: Final = "feature gates that are needed are enabled"
GATES_FOR_LATER: Final = (Check(name="feature-gates", says=_LATER, page=_PAGE, judge=gates_for_later),)
GATES: Final = (Check(name="feature-gates", says=_LATER, page=_PAGE, judge=gates),)
DEVICES: Final = (
    Check(name="device-classes", says="sizes that DRA allocates have their DeviceClasses", page=_PAGE, judge=classes),
    Check(
        name="slices",
        says="the scheduler knows the GPUs that it allocates",
        page=_PAGE,
        judge=slices,
        rests_on=(STATES,),
    ),
)
