"""Checks of the cluster itself, before an installation and after it."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from console.doctor.installation import Installation
from console.doctor.left_to_others import advertised_beyond, gpus_left, leaves_instances
from console.doctor.of_dra import is_used, unless_used
from console.doctor.verdict import Check, Verdict, fail, not_applicable, not_listed, not_seen, unknown, warn
from console.seen import ALL_NODES, SeenNode
from policies.contract import NODE_LABEL
from policies.nodes import NodeRule

_OLDEST: Final = (1, 30)
_OLDEST_DRA: Final = (1, 36)
_POLICIES_API: Final = "admissionregistration.k8s.io/v1"
_NONE_YET: Final = not_applicable("none is, as it should be before the installation")
_PARTITIONED: Final = not_applicable("none is, and the partitions that policies grant need no label")
_DRA_API: Final = "resource.k8s.io/v1"
_NVIDIA_DRA_DRIVER: Final = "gpu.nvidia.com"  # https://github.com/NVIDIA/k8s-dra-driver-gpu


def version(on: Installation) -> Verdict:
    """See that Kubernetes is new enough."""
    if missing := not_seen(on, "version"):
        return missing
    number = _number(on)
    if number is None:
        return unknown(f"the API server says that it is {on.version}")
    needed = f"{_OLDEST[0]}.{_OLDEST[1]}"
    told = (f"Kubernetes is {on.version}, {needed} is needed",) if number < _OLDEST else ()
    return fail(*told, hint=f"upgrade Kubernetes to {needed} or newer")


def apis(on: Installation) -> Verdict:
    """See that the APIs are served which the installation and the policies need."""
    if missing := not_seen(on, "apis"):
        return missing
    served = on.apis or frozenset()
    found = [f"the API server does not serve {_POLICIES_API}"] if _POLICIES_API not in served else []
    number = _number(on)
    if is_used(on):
        found += [f"allocation: dra is used, and {_DRA_API} is not served"] if _DRA_API not in served else []
        if number is not None and number < _OLDEST_DRA:
            found.append(f"allocation: dra is used, which needs Kubernetes 1.36, and this is {on.version}")
    if not found and (missing := not_seen(on, "policies", "version")):  # which say what is needed
        return missing
    return unless_used(fail(*found, hint="enable the API and its feature gates, or change the policies"), on)


def rights(on: Installation) -> Verdict:
    """See that the user can install."""
    if missing := not_seen(on, "rights"):
        return missing
    lacking = [resource for resource, allowed in (on.rights or {}).items() if not allowed]
    return fail(*(f"you may not create {one}" for one in lacking), hint="install as a cluster administrator")


def labelled(on: Installation) -> Verdict:
    """See that some node is to share its GPUs."""
    if missing := not_listed(on, ALL_NODES):
        return missing
    if not _some_labelled(on) and _some_partitioned(on):
        return _PARTITIONED
    told = () if _some_labelled(on) else (f"no node has the label {NODE_LABEL}=true",)
    return warn(*told, hint=f"kubectl label node NODE {NODE_LABEL}=true")


def labelled_for_later(on: Installation) -> Verdict:
    """See whether a node has the label before an installation, which would take its GPUs at once."""
    return labelled(on) if _some_labelled(on) else not_listed(on, ALL_NODES) or _NONE_YET


def other_plugins(on: Installation) -> Verdict:
    """See that nobody else advertises the same GPUs."""
    found = [*_advertised(on), *_published(on)]
    if missing := not_seen(on, "policies" if found else "slices"):  # by policies these GPUs may be left to others
        return missing
    if not _some_labelled(on):
        return not_applicable("no node is labelled, so gpu-share takes no GPU")
    return warn(
        *found,
        hint="no other device plugin may advertise the GPUs that are shared: take its label from the node, or list its "
        "GPUs in nodes of _cluster.yaml (offer: none) and have it see no others",
    )


def _some_labelled(on: Installation) -> bool:
    return any(one.labelled for one in on.seen.nodes)


def _some_partitioned(on: Installation) -> bool:
    """Whether a node has partitions that policies grant, for which it needs no label."""
    tables = on.policies.cluster.partitions.values() if on.policies else ()
    granted = {one.resource for table in tables for one in table}
    return any(not granted.isdisjoint(node.allocatable) for node in on.seen.others)


def _rules(on: Installation, node: SeenNode) -> tuple[NodeRule, ...]:
    return on.policies.cluster.nodes_of(node.name) if on.policies else ()


def _advertised(on: Installation) -> Iterator[str]:
    for node in on.seen.nodes:
        if node.labelled:
            yield from advertised_beyond(node, _rules(on, node))


def _published(on: Installation) -> Iterator[str]:
    theirs = {one.spec.node_name for one in on.slices or () if one.spec.driver == _NVIDIA_DRA_DRIVER}
    for node in on.seen.nodes:
        is_left = leaves_instances(node) or gpus_left(_rules(on, node)) != 0
        if node.labelled and node.name in theirs and not is_left:
            yield f"{node.name} has devices of the DRA driver {_NVIDIA_DRA_DRIVER} too"


def _number(on: Installation) -> tuple[int, int] | None:
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})", on.version or "")
    return (int(found[1]), int(found[2])) if found else None


_VERSIONS: Final = (
    Check(name="kubernetes-version", says="Kubernetes is new enough", page="install.md", judge=version),
    Check(name="apis", says="the API server serves what is needed", page="install.md", judge=apis),
)
_LABELLED: Final = Check(name="nodes-labelled", says="nodes are labelled", page="install.md#3-install", judge=labelled)
_OTHERS: Final = Check(
    name="other-plugins",
    says="no other device plugin has the GPUs",
    page="install.md#3-install",
    judge=other_plugins,
    rests_on=(ALL_NODES,),
)
KUBERNETES: Final = (*_VERSIONS, _LABELLED, _OTHERS)
KUBERNETES_FOR_LATER: Final = (
    *_VERSIONS,
    msgspec.structs.replace(_LABELLED, judge=labelled_for_later),
    _OTHERS,
)
RIGHTS: Final = (Check(name="rights", says="you may install", page="install.md#3-install", judge=rights),)
