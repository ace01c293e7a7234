"""Checks of the policies: whether they are valid, the same everywhere, and what Pod Security lets them attach."""

from typing import Final

from console.doctor.installation import Installation
from console.doctor.parts import COMPONENTS, component_of, no_parts, parts
from console.doctor.verdict import (
    OK,
    Check,
    Verdict,
    fail,
    not_seen,
    policies_of,
    unknown,
    unless_broken,
    unlike,
    warn,
)
from console.objects import Pod
from console.seen import OUR_PODS, STATES
from console.words import Shown
from policies.contract import NAMESPACE, POD_SECURITY_LABEL, POLICIES_VOLUME, RESTRICTED_LEVELS
from policies.policy_volume import sources_of


def valid(on: Installation) -> Verdict:
    """See that every policy file is valid."""
    if not on.policy_problems:
        return not_seen(on, "policies") or OK
    if newer := on.newer_version(*on.policy_problems):
        return unlike(newer, *on.policy_problems)
    return fail(*on.policy_problems, hint="correct the file, and apply it: gpu-share policy check DIRECTORY")


def in_force(on: Installation) -> Verdict:
    """See that no webhook pod reports a policy file that it could not take."""
    if found := on.troubles(of_certificates=False):
        return fail(*found, hint="correct what the line says; until then the last good state serves, if there is one")
    return unknown(on.unheard) if on.unheard else OK


def same(on: Installation) -> Verdict:
    """See that webhook and nodes have read the same `_cluster.yaml`."""
    by_map: dict[str, set[str]] = {}
    for pod in parts(on.seen, *COMPONENTS):
        if any(one.name == POLICIES_VOLUME for one in pod.spec.volumes):
            by_map.setdefault(_sources(pod), set()).add(component_of(pod))
    found = (
        [f"{' and '.join(sorted(parts))} read {names}" for names, parts in by_map.items()] if len(by_map) > 1 else []
    )
    found += [
        f"{node.name} needs a restart for {', '.join(node.state.restart_needed)}"
        for node in on.seen.nodes
        if node.state is not None and node.state.restart_needed
    ]
    hint = "wait for the rollout to end; gpu-share mps takes a change when its pods are replaced by hand"
    not_taken = [
        f"{node.name} goes on without {node.state.not_taken}"
        for node in on.seen.nodes
        if node.state is not None and node.state.not_taken
    ]
    if not_taken:
        hint = "correct _cluster.yaml, or change it back, before a part of these nodes is restarted"
    return warn(*found, *not_taken, hint=hint)


def _sources(pod: Pod) -> str:
    """Name the ConfigMaps in the volume, and the files of those that are not taken as a whole."""
    sources = sources_of(pod.spec.volumes)
    if sources is None:
        return "what is not made of ConfigMaps alone"
    taken = (", ".join(f"{item.path} of {item.key}" for item in one.items) for one in sources)
    return " and ".join(
        Shown(f"{one.name} ({files})" if files else one.name) for one, files in zip(sources, taken, strict=True)
    )


def pod_security(on: Installation) -> Verdict:
    """See that Pod Security denies neither what policies attach in pods, nor the pods of gpu-share itself."""
    ours = (on.namespaces or {}).get(NAMESPACE)
    if ours is not None and (level := ours.labels.get(POD_SECURITY_LABEL)) in RESTRICTED_LEVELS:
        return fail(
            f"the namespace {NAMESPACE} enforces {level}, so no plugin and no MPS can be created in it any more",
            hint=f"kubectl label --overwrite namespace {NAMESPACE} {POD_SECURITY_LABEL}=privileged",
        )
    policies = policies_of(on, "namespaces")
    if isinstance(policies, Verdict):
        return policies
    levels = {
        name: level
        for name, namespace in sorted((on.namespaces or {}).items())
        if (level := namespace.labels.get(POD_SECURITY_LABEL)) in RESTRICTED_LEVELS and not policies.is_exempt(name)
    }
    found = []
    for name, level in levels.items():
        effective = policies.of(name)
        policy = effective.policy
        if policy.enabled and policy.strategy == "mps" and policy.mps.attach == "pod":
            found.append(f"{name} enforces {level}, and says attach: pod ({effective.source('mps.attach')})")
    made = fail(*found, hint="say mps: {attach: auto}, or node, in the namespace's policy")
    return unless_broken(made, on, levels)


POLICIES: Final = (
    Check(name="policies-valid", says="policy files are valid", page="policies.md#when-a-file-is-broken", judge=valid),
    Check(
        name="policies-in-force",
        says="the webhook reports none as broken",
        page="policies.md#when-a-file-is-broken",
        judge=in_force,
    ),
    Check(
        name="policies-same",
        says="all parts have the same",
        page="policies.md#when-a-change-takes-effect",
        judge=same,
        absent=no_parts,
        rests_on=(OUR_PODS, STATES),
    ),
    Check(
        name="pod-security",
        says="Pod Security admits what is attached",
        page="troubleshooting.md#a-pod-is-denied",
        judge=pod_security,
    ),
)
