"""The check of CDI: by it containers get their GPU and limits, as far as the versions of container runtimes tell."""

from typing import Final, NamedTuple

from console.doctor.installation import Installation
from console.doctor.of_dra import is_used, unless_used
from console.doctor.of_nodes import no_nodes
from console.doctor.verdict import OK, Check, Status, Verdict, cut, fail, not_applicable, policies_of, unknown, warn
from console.doctor.version_numbers import numbers_in
from console.seen import ALL_NODES, SeenNode
from policies.contract import CDI, DRA

_CONTAINERD_WITH_CDI: Final = (1, 7)
_CONTAINERD_ENABLED: Final = (2,)  # unless it is told otherwise
_CRIO_WITH_CDI_LAST: Final = (1, 34)  # sets the variables of the device after those of the pod
_VARIABLES: Final = "say handover: [envvar] in _cluster.yaml; what allocation: dra has is always by CDI"
_NO_DRA: Final = "allocation: device-plugin for GPUs of this node, in nodes of _cluster.yaml: DRA has no other way"
_LOOK: Final = "containerd config dump on the node, or env in a container with a share, tells"


class _Told(NamedTuple):
    """What a node's runtime is judged to be."""

    status: Status
    sentence: str = ""
    look: str = ""  # how to know more; empty where the version decides


def cdi(on: Installation) -> Verdict:
    """See that container runtimes have CDI where containers get their GPU by it, as far as their version tells."""
    policies = policies_of(on)
    if isinstance(policies, Verdict):
        return policies
    handover = policies.cluster.handover
    does_without = set(handover) != {CDI}  # but for what DRA allocates
    if not is_used(on) and does_without:
        return unless_used(not_applicable(f"handover: [{', '.join(handover)}] does without it"), on)
    told = [(_cdi_by_dra if does_without else _cdi_of)(node) for node in on.seen.nodes]
    if told and all(one.status == "not-applicable" for one in told):
        return not_applicable(f"no node allocates by DRA, and handover: [{', '.join(handover)}] does without it")
    upgrade = f"upgrade the container runtime, or {_NO_DRA if does_without else _VARIABLES}"
    if without := [one.sentence for one in told if one.status == "failure"]:
        return fail(*cut(without), hint=upgrade)
    if odd := [one for one in told if one.status == "warning"]:
        return warn(*cut([one.sentence for one in odd]), hint="; ".join({one.look or upgrade: None for one in odd}))
    silent = [one.sentence for one in told if one.status == "unknown"]
    return unknown("; ".join(cut(silent))) if silent else OK


def _cdi_by_dra(node: SeenNode) -> _Told:
    """Judge it where nothing but what DRA allocates needs CDI."""
    told = _cdi_of(node)
    allocations = {gpu.allocation for gpu in node.gpus}
    if DRA in allocations:
        return told
    if allocations and "" not in allocations:
        return _Told("not-applicable")
    if told.status == "ok":
        return told
    return _Told("unknown", f"{told.sentence}, and nobody knows whether allocation: dra is used there")


def _cdi_of(node: SeenNode) -> _Told:
    """Judge the container runtime of a node by its version: the table of docs/install.md."""
    name, _, version = node.runtime.partition("://")
    numbers = numbers_in(version)
    if numbers is None or name not in ("containerd", "cri-o"):
        return _Told("unknown", f"{node.name}: nothing is known of CDI in {node.runtime or 'its container runtime'}")
    if name == "cri-o" and numbers < _CRIO_WITH_CDI_LAST:
        why = f"CRI-O {version} sets a pod's variables after those of the share, so an envFrom can lift its limits"
        return _Told("warning", f"{node.name}: {why}")
    if name == "containerd" and numbers < _CONTAINERD_WITH_CDI:
        return _Told("failure", f"{node.name}: containerd {version} has no CDI")
    if name == "containerd" and numbers < _CONTAINERD_ENABLED:
        return _Told(
            "warning", f"{node.name}: containerd {version} has CDI only if it is told enable_cdi = true", _LOOK
        )
    return _Told("ok")


BY_CDI: Final = Check(
    name="cdi",
    says="container runtimes have CDI",
    page="install.md#container-runtimes-cdi-or-variables",
    judge=cdi,
    absent=no_nodes,
    rests_on=(ALL_NODES,),
)
