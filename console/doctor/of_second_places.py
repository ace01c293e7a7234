"""Checks of the settings that stand in a second place: the table of docs/install.md, row by row."""

import re
from collections.abc import Iterator
from typing import Final

from console.doctor import of_dra
from console.doctor.admission import MatchCondition, Selector
from console.doctor.installation import Installation
from console.doctor.verdict import APPLY, OK, Check, Verdict, cut, fail, not_seen, policies_of, unknown, warn
from console.words import Shown
from policies.contract import HOST_PATHS_ANNOTATION, MODE_LABEL, NAMESPACE, WEBHOOK_NAMES
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet

_PAGE: Final = "install.md#2-the-policies"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_CREATED, _CHANGED = NAMESPACE, f"{NAMESPACE}-changes"  # the admission policies, by what they validate
_LOCKED: Final = f"{NAMESPACE}-lockdown"  # which a cluster may have
_OF_PODS: Final = "what users forge, or add later, is admitted"
# What is so without each of them.
_POLICIES: Final = {_CREATED: _OF_PODS, _CHANGED: _OF_PODS}
_POLICIES_OF_LOCKDOWN: Final = {
    _LOCKED: "pods without a share can name GPUs",
    f"{_LOCKED}-claims": "claims can be of GPUs by the DeviceClass of another driver",
}
_POLICIES_OF_DRA: Final = {
    f"{NAMESPACE}-claims": "who may create pods can use the claim, and so the GPU, of others",
    f"{NAMESPACE}-claim-templates": "who may write templates of claims gets any share",
    f"{NAMESPACE}-allocations": "a claim of a DeviceClass that leaves the driver open is allocated shares",
    f"{NAMESPACE}-slices": "the plugin of one node can publish the GPUs of another",
}
_FILES_OF_DRA: Final = "manifests/overlays/dra/driver/admission-policy"
_TEXT: Final = re.compile(r"'([^']*)'")  # of CEL
# How the variable `pipes` writes slashes and dots, and what they mean.
_WRITTEN: Final = (("^([.]?/+)*", "/"), ("(/+[.])*/+", "/"), ("[.]", "."), ("\\.", "."))


def policed(on: Installation) -> Verdict:
    """See that the API server validates pods with a share itself, and by DRA their claims."""
    if missing := not_seen(on, "admission_policies", "bindings"):
        return missing
    there, by_dra = on.admission_policies or {}, of_dra.is_used(on)
    locked = {name: without for name, without in _POLICIES_OF_LOCKDOWN.items() if name in there}
    bound = {one.spec.policy_name for one in on.bindings or ()}
    denying = {one.spec.policy_name for one in on.bindings or () if "Deny" in one.spec.validation_actions}
    tried = {name: without for name, without in locked.items() if name in bound - denying}
    found, files = [], []
    for name, without in {**_POLICIES, **locked, **(_POLICIES_OF_DRA if by_dra else {})}.items():
        if name not in there:
            found.append(f"there is no ValidatingAdmissionPolicy {name}: {without}")
        elif name not in denying | tried.keys():
            found.append(f"no binding has the ValidatingAdmissionPolicy {name} deny anything: {without}")
        else:
            continue
        if name in _POLICIES_OF_DRA:
            files.append(f"{_FILES_OF_DRA}-{'slices' if name.endswith('-slices') else 'claims'}.yaml")
    if not found and tried:
        told = (f"the ValidatingAdmissionPolicy {name} only warns: {without}" for name, without in tried.items())
        return warn(*told, hint="when the trial is over, have its binding say validationActions: [Deny]")
    if not found and not by_dra:
        return not_seen(on, "policies") or OK  # which say whether DRA is used
    without_dra = f"; where that has nothing of DRA, kubectl apply -f {' -f '.join(dict.fromkeys(files))}"
    return fail(*found, hint=f"{APPLY}{without_dra if files else ''}")


def exempt(on: Installation) -> Verdict:
    """See that exempt namespaces are exempt for the webhook and the admission policies as well."""
    policies = _policies_of_admission(on)
    if isinstance(policies, Verdict):
        return policies
    wanted = {*policies.cluster.exempt_namespaces, NAMESPACE}
    found = []
    for name, selector in _selectors(on):
        excluded = _excluded(selector)
        found += [f"{name} is called for {one}, which is exempt" for one in sorted(wanted - excluded)]
        found += [f"{name} is not called for {one}, which is not exempt" for one in sorted(excluded - wanted)]
    return fail(*found, hint="make exemptNamespaces of _cluster.yaml and the namespaceSelectors the same")


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
    for place in (_CREATED, _LOCKED):
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
    return fail(*found, hint="make mps.pipeDirectory, both paths of gpu-share-mps, and the variables the same")


def host_paths(on: Installation) -> Verdict:
    """See that each namespace's annotation repeats the hostPaths of its policy."""
    policies = policies_of(on, "namespaces")
    if isinstance(policies, Verdict):
        return policies
    found = []
    for name, namespace in sorted((on.namespaces or {}).items()):
        if policies.is_exempt(name) or name == NAMESPACE:
            continue
        wanted, text = _listed(policies.of(name)), namespace.annotations.get(HOST_PATHS_ANNOTATION, "")
        listed = {Shown(one) for one in text.replace(" ", "").split(",") if one}
        if wanted - listed:
            found.append(f"{name}: its annotation lacks {', '.join(sorted(wanted - listed))}, which its policy lists")
        if listed - wanted:
            found.append(f"{name}: its policy lacks {', '.join(sorted(listed - wanted))}, which its annotation lists")
    command = f"kubectl annotate --overwrite namespace NAME {HOST_PATHS_ANNOTATION}=..."
    return warn(*cut(found), hint=f"{command}, as gpu-share policy check prints it: both lists must have a path")


def warn_mode(on: Installation) -> Verdict:
    """See that namespaces with `mode: warn` have the label, and no others."""
    policies = policies_of(on, "namespaces")
    if isinstance(policies, Verdict):
        return policies
    found = []
    for name, namespace in sorted((on.namespaces or {}).items()):
        says = policies.of(name).policy.mode == "warn"
        is_labelled = namespace.labels.get(MODE_LABEL) == "warn"
        if policies.is_exempt(name) or name == NAMESPACE or says == is_labelled:
            continue
        found.append(
            f"{name} is in mode: warn, and lacks the label {MODE_LABEL}=warn"
            if says
            else f"{name} has the label {MODE_LABEL}=warn, and its policy does not say mode: warn"
        )
    return warn(
        *cut(found), hint=f"kubectl label namespace NAME {MODE_LABEL}=warn, or {MODE_LABEL}- where it is too much"
    )


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
    for name in (_CREATED, _CHANGED):
        if policy := (on.admission_policies or {}).get(name):
            yield f"the policy {name}", policy.spec.match_constraints.namespace_selector


def _conditions(on: Installation) -> Iterator[tuple[str, tuple[MatchCondition, ...]]]:
    for webhook in on.webhook.webhooks if on.webhook else ():
        if webhook.name in WEBHOOK_NAMES[:2]:
            yield str(webhook.name), webhook.match_conditions
    if policy := (on.admission_policies or {}).get(_CREATED):
        yield f"the policy {_CREATED}", policy.spec.match_conditions


def _excluded(selector: Selector) -> set[str]:
    return {
        str(value)
        for one in selector.match_expressions
        if one.key == _NAME_LABEL and one.operator == "NotIn"
        for value in one.values
    }


def _of_daemons(on: Installation, wanted: str) -> Iterator[str]:
    for pod in on.seen.parts:
        for volume in pod.spec.volumes:
            if volume.name == "pipes" and volume.host_path is not None and volume.host_path.path != wanted:
                yield f"gpu-share mps serves in {volume.host_path.path}, and pods are told {wanted}"
        for container in pod.spec.containers:
            for mount in container.volume_mounts:
                if mount.name == "pipes" and mount.mount_path != wanted:
                    yield f"gpu-share mps has the pipes at {mount.mount_path}, and its clients have them at {wanted}"


def _of_admission(on: Installation, wanted: str) -> Iterator[str]:
    for name in (_CREATED, _CHANGED, _LOCKED):
        policy = (on.admission_policies or {}).get(name)
        if policy is None:
            continue
        if _directory(policy.variable("pipes")) != wanted:
            yield f"the variable pipes of the policy {name} is not a pattern for {wanted}"
        if name == _CREATED and wanted not in _TEXT.findall(policy.variable("never")):
            yield f"the variable never of the policy {name} lacks {wanted}"


def _directory(expression: str) -> str:
    """Read the directory out of the pattern that an admission policy has for it."""
    pattern = expression.strip().strip("'")
    for written, meant in _WRITTEN:
        pattern = pattern.replace(written, meant)
    return pattern


def _listed(effective: EffectivePolicy) -> set[str]:
    rules = effective.policy.host_paths if effective.policy.enabled else ()
    return {f"{one.path}:rw" if one.writable else one.path for one in rules}


SECOND_PLACES: Final = (
    Check(name="admission-policies", says="the API server checks pods itself", page=_PAGE, judge=policed),
    Check(name="exempt-namespaces", says="exempt namespaces are the same everywhere", page=_PAGE, judge=exempt),
    Check(name="resource-names", says="resource names are the same everywhere", page=_PAGE, judge=resources),
    Check(name="pipe-directory", says="the pipe directory is the same everywhere", page=_PAGE, judge=pipes),
    Check(name="host-paths", says="hostPaths are the same twice", page=_PAGE, judge=host_paths),
    Check(name="warn-mode", says="mode: warn is the same twice", page=_PAGE, judge=warn_mode),
)
