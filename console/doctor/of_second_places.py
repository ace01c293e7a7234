"""Checks of the settings that stand in a second place: the table of docs/install.md, row by row."""

import re
from collections.abc import Iterator
from typing import Final

from console.doctor.admission import (
    CHANGED_POLICY,
    CREATED_POLICY,
    LOCKDOWN_CLAIMS_POLICY,
    LOCKDOWN_POLICY,
    MatchCondition,
    Selector,
)
from console.doctor.installation import Installation
from console.doctor.of_admission import has_one
from console.doctor.parts import COMPONENTS, parts
from console.doctor.verdict import APPLY, Check, Verdict, cut, fail, not_seen, policies_of, unknown, unless_broken, warn
from console.objects import Metadata
from console.seen import OUR_PODS
from console.words import Shown
from policies.contract import HOST_PATHS_ANNOTATION, MODE_LABEL, NAMESPACE, WEBHOOK_NAMES
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet

_PAGE: Final = "install.md#2-the-policies"
_NEVER_LOCKED: Final = frozenset({NAMESPACE, "kube-system"})  # what runs there has the devices of nodes
_WITH_PIPES: Final = (CREATED_POLICY, CHANGED_POLICY, LOCKDOWN_POLICY)
_TEXT: Final = re.compile(r"'([^']*)'")  # of CEL
# What the variable `pipes` has for the slashes of a path, since a hostPath may have several, and dots between.
_FIRST_SLASH: Final = "^([.]?/+)*"
_SLASH: Final = "(/+[.])*/+"


def exempt(on: Installation) -> Verdict:
    """See that exempt namespaces are exempt for the webhook and the admission policies as well."""
    policies = _policies_of_admission(on)
    if isinstance(policies, Verdict):
        return policies
    wanted = {*policies.cluster.exempt_namespaces, NAMESPACE}
    found = []
    for name, selector in _selectors(on):
        excluded = selector.excluded
        found += [f"{name} is called for {one}, which is exempt" for one in sorted(wanted - excluded)]
        found += [f"{name} is not called for {one}, which is not exempt" for one in sorted(excluded - wanted)]
    locked = [*_locked(on)]
    hints = ["make exemptNamespaces of _cluster.yaml and the namespaceSelectors the same"] if found else []
    hints += [f"exempt it from both policies of the lockdown: {APPLY}"] if locked else []
    return fail(*found, *locked, hint="; ".join(hints))


def _locked(on: Installation) -> Iterator[str]:
    for name in (LOCKDOWN_POLICY, LOCKDOWN_CLAIMS_POLICY):
        if policy := (on.admission_policies or {}).get(name):
            for one in sorted(_NEVER_LOCKED - policy.spec.match_constraints.namespace_selector.excluded):
                yield f"the policy {name} is called for {one}, whose pods need what it denies"


def resources(on: Installation) -> Verdict:
    """See that webhook and admission policy are for the resources of `_cluster.yaml`."""
    policies = _policies_of_admission(on)
    if isinstance(policies, Verdict):
        return policies
    names = policies.cluster.resource_names
    wanted = {name: f"'{name}'" for name in sorted(names.values())}
    if policies.cluster.models:
        wanted["the resources of devices"] = "'-model-'"
    found = [
        f"the conditions of {place} lack {name}"
        for place, conditions in _conditions(on)
        for name, written in wanted.items()
        if not any(written in one.expression for one in conditions)
    ]
    in_order = [names["mps"], names["time-slicing"], names["whole"]]
    for place in (CREATED_POLICY, LOCKDOWN_POLICY):
        policy = (on.admission_policies or {}).get(place)
        if policy is not None and _TEXT.findall(policy.variable("resources")) != in_order:
            found.append(f"the variable resources of the policy {place} is not {in_order}, in this order")
    return fail(*found, hint="make resourceNames of _cluster.yaml, the matchConditions and the variable the same")


def pipes(on: Installation) -> Verdict:
    """See that the MPS daemons serve, and the admission policies look, in the directory that pods are told of."""
    policies = policies_of(on, "admission_policies")
    if isinstance(policies, Verdict):
        return policies
    wanted = policies.cluster.mps.pipe_directory
    found = [*dict.fromkeys(_of_daemons(on, wanted)), *_of_admission(on, wanted)]
    return fail(*found, hint="make mps.pipeDirectory, both paths of gpu-share-mps, and the variables agree")


def host_paths(on: Installation) -> Verdict:
    """See that each namespace's annotation repeats the hostPaths of its policy."""
    policies = policies_of(on, "namespaces")
    if isinstance(policies, Verdict):
        return policies
    found = []
    for name, namespace in _judged(on).items():
        wanted, text = _listed(policies.of(name)), namespace.annotations.get(HOST_PATHS_ANNOTATION, "")
        listed = {Shown(one) for one in text.replace(" ", "").split(",") if one}
        if wanted - listed:
            found.append(f"{name}: its annotation lacks {', '.join(sorted(wanted - listed))}, which its policy lists")
        if listed - wanted:
            found.append(f"{name}: its policy lacks {', '.join(sorted(listed - wanted))}, which its annotation lists")
    command = f"kubectl annotate --overwrite namespace NAME {HOST_PATHS_ANNOTATION}=..."
    made = warn(*cut(found), hint=f"{command}, as gpu-share policy check prints it: both lists must have a path")
    return unless_broken(made, on, _not_exempt(on))


def warn_mode(on: Installation) -> Verdict:
    """See that namespaces with `mode: warn` have the label, and no others."""
    policies = policies_of(on, "namespaces")
    if isinstance(policies, Verdict):
        return policies
    found = []
    for name, namespace in _judged(on).items():
        says = policies.of(name).policy.mode == "warn"
        is_labelled = namespace.labels.get(MODE_LABEL) == "warn"
        if says == is_labelled:
            continue
        found.append(
            f"{name} is in mode: warn, and lacks the label {MODE_LABEL}=warn"
            if says
            else f"{name} has the label {MODE_LABEL}=warn, and its policy does not say mode: warn"
        )
    hint = f"kubectl label namespace NAME {MODE_LABEL}=warn, or {MODE_LABEL}- where it is too much"
    return unless_broken(warn(*cut(found), hint=hint), on, _not_exempt(on))


def _not_exempt(on: Installation) -> dict[str, Metadata]:
    is_exempt = on.policies.is_exempt if on.policies else bool
    return {name: one for name, one in sorted((on.namespaces or {}).items()) if not is_exempt(name)}


def _judged(on: Installation) -> dict[str, Metadata]:
    """Leave out the namespaces of which nobody knows the policy: `unless_broken` says so of them."""
    return {name: one for name, one in _not_exempt(on).items() if name not in on.broken_policies}


def _policies_of_admission(on: Installation) -> PolicySet | Verdict:
    """Return the policies, or why webhook and admission policies cannot be held against them."""
    if missing := not_seen(on, "policies", "webhook", "admission_policies"):
        return missing
    if on.policies is None or on.webhook is None:
        return unknown("there are no valid policies, or no webhook configuration")
    return on.policies


def _selectors(on: Installation) -> Iterator[tuple[str, Selector]]:
    for webhook in on.webhook.webhooks if on.webhook else ():
        if webhook.name in WEBHOOK_NAMES:
            yield str(webhook.name), webhook.namespace_selector
    for name in (CREATED_POLICY, CHANGED_POLICY):
        if policy := (on.admission_policies or {}).get(name):
            yield f"the policy {name}", policy.spec.match_constraints.namespace_selector


def _conditions(on: Installation) -> Iterator[tuple[str, tuple[MatchCondition, ...]]]:
    for webhook in on.webhook.webhooks if on.webhook else ():
        if webhook.name in WEBHOOK_NAMES[:2]:
            yield str(webhook.name), webhook.match_conditions
    if policy := (on.admission_policies or {}).get(CREATED_POLICY):
        yield f"the policy {CREATED_POLICY}", policy.spec.match_conditions


def _of_daemons(on: Installation, wanted: str) -> Iterator[str]:
    for pod in parts(on.seen, *COMPONENTS):
        for volume in pod.spec.volumes:
            if volume.name == "pipes" and volume.host_path is not None and volume.host_path.path != wanted:
                yield f"gpu-share mps serves in {volume.host_path.path}, and pods are told {wanted}"
        for container in pod.spec.containers:
            for mount in container.volume_mounts:
                if mount.name == "pipes" and mount.mount_path != wanted:
                    at = Shown(mount.mount_path)
                    yield f"gpu-share mps has the pipes at {at}, and its clients have them at {wanted}"


def _nothing_has_pipes(on: Installation) -> str:
    volumes = (volume for pod in parts(on.seen, *COMPONENTS) for volume in pod.spec.volumes)
    if has_one(on, _WITH_PIPES) or any(one.name == "pipes" for one in volumes):
        return ""
    return "there is neither gpu-share mps nor an admission policy that looks for pipes"


def _of_admission(on: Installation, wanted: str) -> Iterator[str]:
    pattern = _pattern(wanted)
    for name in _WITH_PIPES:
        policy = (on.admission_policies or {}).get(name)
        if policy is None:
            continue
        if policy.variable("pipes").strip() != pattern:
            told = f"is not the pattern that gpu-share ships for {wanted}: expected {pattern}"
            yield f"the variable pipes of the policy {name} {told}"
        if name == CREATED_POLICY and wanted not in _TEXT.findall(policy.variable("never")):
            yield f"the variable never of the policy {name} lacks {wanted}"


def _pattern(directory: str) -> str:
    """Write the pattern for a directory as the admission policies have it."""
    names = directory.removeprefix("/").replace(".", "[.]")
    return f"'{_FIRST_SLASH}{names.replace('/', _SLASH)}'"


def _listed(effective: EffectivePolicy) -> set[str]:
    rules = effective.policy.host_paths if effective.policy.enabled else ()
    return {f"{one.path}:rw" if one.writable else one.path for one in rules}


SECOND_PLACES: Final = (
    Check(name="exempt-namespaces", says="exempt namespaces are the same everywhere", page=_PAGE, judge=exempt),
    Check(name="resource-names", says="resource names are the same everywhere", page=_PAGE, judge=resources),
    Check(
        name="pipe-directory",
        says="the pipe directory is the same everywhere",
        page=_PAGE,
        judge=pipes,
        absent=_nothing_has_pipes,
        rests_on=(OUR_PODS,),
    ),
    Check(name="host-paths", says="hostPaths are the same twice", page=_PAGE, judge=host_paths),
    Check(name="warn-mode", says="mode: warn is the same twice", page=_PAGE, judge=warn_mode),
)
