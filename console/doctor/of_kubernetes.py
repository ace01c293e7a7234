"""Checks of the cluster itself, before an installation and after it."""

from collections.abc import Iterator
from typing import Final

import msgspec

from console.doctor.had_by_others import had_beyond
from console.doctor.installation import Installation
from console.doctor.kubernetes import OLDEST, OLDEST_DRA, version_in, written
from console.doctor.nvidia_dra_devices import NVIDIA_DRA_DRIVER
from console.doctor.of_dra import is_used, unless_used
from console.doctor.verdict import OK, Check, Verdict, cut, fail, not_applicable, not_listed, not_seen, unknown, warn
from console.seen import ALL_NODES
from policies.cluster import Cluster
from policies.contract import DRA, NODE_LABEL

_POLICIES_API: Final = "admissionregistration.k8s.io/v1"
_NONE_YET: Final = not_applicable("none is, as it should be before the installation")
_PARTITIONED: Final = not_applicable("none is, and policies grant partitions alone, which need no label")
_DRA_API: Final = "resource.k8s.io/v1"
_LOOK: Final = (
    "see which GPUs that plugin has (kubectl exec in its pod, nvidia-smi -L; or its log): no other ones than nodes of "
    "_cluster.yaml leaves to it"
)


def version(on: Installation) -> Verdict:
    """See that Kubernetes is new enough: the API server, and the kubelets where GPUs are shared."""
    number = version_in(on.version or "")
    told = [f"Kubernetes is {on.version}, {written(OLDEST)} is needed"] if number and number < OLDEST else []
    told += _old_kubelets(on)
    if told:
        return fail(*cut(told), hint="upgrade it; kubelets of 1.30 to 1.35 can share by allocation: device-plugin")
    if number is None:
        return not_seen(on, "version") or unknown(f"the API server says that it is {on.version}")
    doubts = cut([*_unclear_kubelets(on)])
    return unknown("; ".join(doubts)) if doubts and is_used(on) else unless_used(OK, on) if doubts else OK


def apis(on: Installation) -> Verdict:
    """See that the APIs are served which the installation and the policies need."""
    if missing := not_seen(on, "apis"):
        return missing
    served = on.apis or frozenset()
    found = [f"the API server does not serve {_POLICIES_API}"] if _POLICIES_API not in served else []
    number = version_in(on.version or "")
    if is_used(on):
        found += [f"allocation: dra is used, and {_DRA_API} is not served"] if _DRA_API not in served else []
        if number is not None and number < OLDEST_DRA:
            needs = f"Kubernetes {written(OLDEST_DRA)}"
            found.append(f"allocation: dra is used, which needs {needs}, and this is {on.version}")
    if not found and (missing := not_seen(on, "policies", "version")):  # which say what is needed
        return missing
    return unless_used(fail(*found, hint="enable the API and its feature gates, or change the policies"), on)


def rights(on: Installation) -> Verdict:
    """See that the user can install."""
    if missing := not_seen(on, "lacking_rights"):
        return missing
    lacking = on.lacking_rights or ()
    return fail(*(f"you may not {one}" for one in lacking), hint="install as a cluster administrator")


def labelled(on: Installation) -> Verdict:
    """See that some node is to share its GPUs."""
    if missing := not_listed(on, ALL_NODES):
        return missing
    if not _some_labelled(on) and _all_partitioned(on):
        return _PARTITIONED
    told = () if _some_labelled(on) else (f"no node has the label {NODE_LABEL}=true",)
    return warn(*told, hint=f"kubectl label node NODE {NODE_LABEL}=true")


def labelled_for_later(on: Installation) -> Verdict:
    """See whether a node has the label before an installation, which would take its GPUs at once."""
    return labelled(on) if _some_labelled(on) else not_listed(on, ALL_NODES) or _NONE_YET


def other_plugins(on: Installation) -> Verdict:
    """See that nobody else advertises the same GPUs."""
    slices = [one for one in on.slices or () if one.spec.driver == NVIDIA_DRA_DRIVER]
    labelled = [node for node in on.seen.nodes if node.labelled]
    beyond = [had_beyond(node, _cluster(on), slices) for node in labelled]
    found = [sentence for one in beyond for sentence in one.found]
    doubts = [sentence for one in beyond for sentence in one.doubts]
    by_policies = "policies" if found or doubts else "slices"  # by policies these GPUs may be left to others
    if missing := not_seen(on, by_policies):
        return missing
    if not labelled:
        return not_applicable("no node is labelled, so gpu-share takes no GPU")
    if doubts and not found:
        silent = (node.silent.right for node, one in zip(labelled, beyond, strict=True) if one.doubts and node.silent)
        return Verdict(status="unknown", found=tuple(cut(doubts)), hint=_LOOK, right=next(silent, ""))
    return warn(
        *cut(found),
        hint="no other device plugin may advertise the GPUs that are shared: take its label from the node, or list its "
        "GPUs in nodes of _cluster.yaml (offer: none) and have it see no others",
    )


def _some_labelled(on: Installation) -> bool:
    return any(one.labelled for one in on.seen.nodes)


def _all_partitioned(on: Installation) -> bool:
    """Whether policies grant nothing but partitions, for which no node needs the label."""
    every = (on.policies.default, *on.policies.namespaces.values()) if on.policies else ()
    strategies = {one.policy.strategy for one in every if one.policy.enabled and not one.broken}
    return strategies == {"partition"}


def _cluster(on: Installation) -> Cluster:
    return on.policies.cluster if on.policies else Cluster()


def _old_kubelets(on: Installation) -> Iterator[str]:
    for node in on.seen.nodes:
        number, is_by_dra = version_in(node.kubelet), any(gpu.allocation == DRA for gpu in node.gpus)
        needed = OLDEST_DRA if is_by_dra else OLDEST
        if number and number < needed:
            what = "allocation: dra is used there, which needs" if is_by_dra else "gpu-share needs"
            yield f"the kubelet of {node.name} is {node.kubelet}, and {what} {written(needed)}"


def _unclear_kubelets(on: Installation) -> Iterator[str]:
    """Name the nodes whose kubelets are too old for DRA, and that do not say whether they use it."""
    for node in on.seen.nodes:
        number = version_in(node.kubelet)
        if number and number < OLDEST_DRA and node.state is None:
            yield f"nobody knows whether allocation: dra is used on {node.name}, whose kubelet is {node.kubelet}"


_VERSIONS: Final = (
    Check(
        name="kubernetes-version",
        says="Kubernetes is new enough",
        page="install.md",
        judge=version,
        rests_on=(ALL_NODES,),
    ),
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
