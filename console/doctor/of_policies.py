"""Checks of the policies: whether they are valid, the same everywhere, and repeated where they have to be."""

from typing import Final

from console.doctor.installation import Installation
from console.doctor.verdict import Check, Verdict, fail, not_seen, unknown, warn
from console.seen import COMPONENT_LABEL
from policies.contract import MODE_LABEL, NAMESPACE, WEBHOOK_NAMES

_ENFORCE_LABEL: Final = "pod-security.kubernetes.io/enforce"
_RESTRICTED: Final = ("baseline", "restricted")
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_SECOND_PLACE: Final = "install.md#2-the-policies"


def valid(on: Installation) -> Verdict:
    """See that every policy file is valid."""
    if missing := not_seen(on, "policies"):
        return missing
    return fail(*(on.policy_problems or ()), hint="correct the file, and apply it: gpu-share policy check DIRECTORY")


def in_force(on: Installation) -> Verdict:
    """See that every webhook pod has the policies that are written."""
    if not on.ready:
        return unknown("no webhook pod runs, or none can be seen")
    found, silent = [], []
    for pod, said in on.ready.items():
        lines = said.splitlines()
        if lines[:1] != ["ready"]:
            silent.append(f"{pod}: {said}")
        found += [f"{pod}: {line}" for line in lines[1:]]
    if found or not silent:
        return fail(*found, hint="correct what the line says; until then the last good state serves")
    return unknown("; ".join(silent))


def same(on: Installation) -> Verdict:
    """See that webhook and nodes have read the same `_cluster.yaml`."""
    by_map: dict[str, set[str]] = {}
    for pod in on.seen.parts:
        for volume in pod.spec.volumes:
            if volume.name == "policies" and volume.projected is not None:
                names = [str(one.config_map.name) for one in volume.projected.sources if one.config_map]
                component = pod.metadata.labels.get(COMPONENT_LABEL, "")
                by_map.setdefault(" and ".join(names), set()).add(component)
    found = (
        [f"{' and '.join(sorted(parts))} read {names}" for names, parts in by_map.items()] if len(by_map) > 1 else []
    )
    found += [
        f"{node.name} needs a restart for {', '.join(node.state.restart_needed)}"
        for node in on.seen.nodes
        if node.state is not None and node.state.restart_needed
    ]
    return warn(
        *found, hint="wait for the rollout to end; gpu-share mps takes a change when its pods are replaced by hand"
    )


def exempt(on: Installation) -> Verdict:
    """See that the exempt namespaces are in the webhook configuration as well."""
    if missing := not_seen(on, "policies", "webhook"):
        return missing
    if on.policies is None or on.webhook is None:
        return unknown("there are no valid policies, or no webhook configuration")
    wanted = {*on.policies.cluster.exempt_namespaces, NAMESPACE}
    found = []
    for webhook in on.webhook.webhooks:
        if webhook.name not in WEBHOOK_NAMES:
            continue
        excluded = {
            value
            for one in webhook.namespace_selector.match_expressions
            if one.key == _NAME_LABEL and one.operator == "NotIn"
            for value in one.values
        }
        found += [f"{webhook.name} is called for {one}, which is exempt" for one in sorted(wanted - excluded)]
        found += [f"{webhook.name} is not called for {one}, which is not exempt" for one in sorted(excluded - wanted)]
    return fail(*found, hint="make exemptNamespaces of _cluster.yaml and the namespaceSelectors the same")


def resources(on: Installation) -> Verdict:
    """See that the webhook is called for the resources of `_cluster.yaml`."""
    if missing := not_seen(on, "policies", "webhook"):
        return missing
    if on.policies is None or on.webhook is None:
        return unknown("there are no valid policies, or no webhook configuration")
    names = on.policies.cluster.resource_names.values()
    found = [
        f"the conditions of {webhook.name} lack {name}"
        for webhook in on.webhook.webhooks
        if webhook.name in WEBHOOK_NAMES[:2]
        for name in sorted(names)
        if not any(f"'{name}'" in one.expression for one in webhook.match_conditions)
    ]
    return fail(*found, hint="make resourceNames of _cluster.yaml and the matchConditions the same")


def pipes(on: Installation) -> Verdict:
    """See that the MPS daemons serve in the directory that pods are told of."""
    if missing := not_seen(on, "policies"):
        return missing
    if on.policies is None:
        return unknown("there are no valid policies")
    wanted = on.policies.cluster.mps.pipe_directory
    found = {
        f"gpu-share mps serves in {volume.host_path.path}, and pods are told {wanted}"
        for pod in on.seen.parts
        for volume in pod.spec.volumes
        if volume.name == "pipes" and volume.host_path is not None and volume.host_path.path != wanted
    }
    return fail(*sorted(found), hint="make mps.pipeDirectory and the volume pipes of gpu-share-mps the same")


def warn_mode(on: Installation) -> Verdict:
    """See that namespaces with `mode: warn` have the label, and no others."""
    if missing := not_seen(on, "policies", "namespaces"):
        return missing
    if on.policies is None:
        return unknown("there are no valid policies")
    found = []
    for name, labels in sorted((on.namespaces or {}).items()):
        says, is_labelled = on.policies.of(name).policy.mode == "warn", labels.get(MODE_LABEL) == "warn"
        if on.policies.is_exempt(name) or name == NAMESPACE or says == is_labelled:
            continue
        found.append(
            f"{name} is in mode: warn, and lacks the label {MODE_LABEL}=warn"
            if says
            else f"{name} has the label {MODE_LABEL}=warn, and its policy does not say mode: warn"
        )
    return warn(*found, hint=f"kubectl label namespace NAME {MODE_LABEL}=warn, or {MODE_LABEL}- where it is too much")


def pod_security(on: Installation) -> Verdict:
    """See that no namespace's Pod Security denies what its policy attaches in pods."""
    if missing := not_seen(on, "policies", "namespaces"):
        return missing
    if on.policies is None:
        return unknown("there are no valid policies")
    found = []
    for name, labels in sorted((on.namespaces or {}).items()):
        effective = on.policies.of(name)
        policy = effective.policy
        attaches = policy.enabled and policy.strategy == "mps" and policy.mps.attach == "pod"
        if attaches and labels.get(_ENFORCE_LABEL) in _RESTRICTED and not on.policies.is_exempt(name):
            found.append(
                f"{name} enforces {labels[_ENFORCE_LABEL]}, and says attach: pod ({effective.source('mps.attach')})"
            )
    return fail(*found, hint="say mps: {attach: auto}, or node, in the namespace's policy")


POLICIES: Final = (
    Check(name="policies-valid", says="policy files are valid", page="policies.md#when-a-file-is-broken", judge=valid),
    Check(
        name="policies-in-force", says="the webhook has them", page="policies.md#when-a-file-is-broken", judge=in_force
    ),
    Check(
        name="policies-same", says="all parts have the same", page="policies.md#when-a-change-takes-effect", judge=same
    ),
    Check(name="exempt-namespaces", says="exempt namespaces are the same twice", page=_SECOND_PLACE, judge=exempt),
    Check(name="resource-names", says="resource names are the same twice", page=_SECOND_PLACE, judge=resources),
    Check(name="pipe-directory", says="the pipe directory is the same twice", page=_SECOND_PLACE, judge=pipes),
    Check(name="warn-mode", says="mode: warn is the same twice", page=_SECOND_PLACE, judge=warn_mode),
    Check(
        name="pod-security",
        says="Pod Security admits what is attached",
        page="troubleshooting.md#a-pod-is-denied",
        judge=pod_security,
    ),
)
