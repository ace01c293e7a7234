"""The check how far webhooks and admission policies reach: of what, where, and what comes of a failure."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from console.doctor.admission import (
    CHANGED_POLICY,
    CREATED_POLICY,
    EXEMPTING_POLICIES,
    LOCKDOWN_CLAIMS_POLICY,
    LOCKDOWN_POLICY,
    NAME_LABEL,
    AdmissionPolicy,
    Binding,
    Expression,
    MatchConstraints,
    Rule,
    Selector,
    Service,
    Webhook,
)
from console.doctor.installation import Installation
from console.doctor.of_admission import nothing_denies
from console.doctor.verdict import APPLY, OK, Check, Verdict, cut, fail, not_seen, warn
from console.words import Shown
from policies.contract import (
    EPHEMERAL_WEBHOOK_NAME,
    MODE_LABEL,
    MUTATE_PATH,
    MUTATE_RESTRICTED_PATH,
    NAMESPACE,
    POD_SECURITY_LABEL,
    RESTRICTED_LEVELS,
    RESTRICTED_WEBHOOK_NAME,
    SHARED_LABEL,
    WEBHOOK_NAME,
    WEBHOOK_NAMES,
    WEBHOOK_SERVICE,
)

# What each is asked of: operations, and resources with their subresources.
_ASKED: Final = {
    WEBHOOK_NAME: ("CREATE", "pods"),
    RESTRICTED_WEBHOOK_NAME: ("CREATE", "pods"),
    EPHEMERAL_WEBHOOK_NAME: ("UPDATE", "pods/ephemeralcontainers"),
    CREATED_POLICY: ("CREATE", "pods"),
    CHANGED_POLICY: ("UPDATE", "pods pods/ephemeralcontainers pods/resize pods/status"),
    LOCKDOWN_POLICY: ("CREATE UPDATE", "pods pods/ephemeralcontainers pods/status"),
    LOCKDOWN_CLAIMS_POLICY: ("CREATE UPDATE", "resourceclaims resourceclaimtemplates"),
    f"{NAMESPACE}-claims": ("CREATE UPDATE", "resourceclaims resourceclaims/status"),
    f"{NAMESPACE}-claim-templates": ("CREATE UPDATE", "resourceclaimtemplates"),
    f"{NAMESPACE}-allocations": ("UPDATE", "resourceclaims/status"),
    f"{NAMESPACE}-slices": ("CREATE UPDATE DELETE", "resourceslices"),
}
_FORBIDDING: Final = tuple(map(Shown, RESTRICTED_LEVELS))  # they forbid hostIPC
_OF_CLAIMS: Final = "resource.k8s.io"
_PRIVILEGED: Final = Expression(key=POD_SECURITY_LABEL, operator="NotIn", values=_FORBIDDING)
_RESTRICTED: Final = Expression(key=POD_SECURITY_LABEL, operator="In", values=_FORBIDDING)
_OWN: Final = {WEBHOOK_NAME: _PRIVILEGED, RESTRICTED_WEBHOOK_NAME: _RESTRICTED}  # one of the two is asked
_DENYING: Final = Expression(key=MODE_LABEL, operator="NotIn", values=(Shown("warn"),))  # others warn instead
_WARNED: Final = Expression(key=MODE_LABEL, operator="In", values=(Shown("warn"),))
_WARNING: Final = ("Warn", "Audit")  # what is done there
_SHARED: Final = Expression(key=SHARED_LABEL, operator="In", values=(Shown("true"),))
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")  # of AdmissionReview, that API servers know


def asked(on: Installation) -> Verdict:
    """See that webhooks and admission policies are asked of all that they are for, and deny what they cannot judge."""
    if missing := not_seen(on, "webhook", "admission_policies", "bindings"):
        return missing
    found: list[str] = []
    for webhook in on.webhook.webhooks if on.webhook else ():
        if webhook.name in WEBHOOK_NAMES:
            found += _of_webhook(webhook)
    for name, policy in (on.admission_policies or {}).items():
        if name in _ASKED:
            found += _of_policy(name, policy)
            found += _of_bindings(name, on.bindings or ())
    return fail(*found, hint=APPLY) if found else _told(on)


def _told(on: Installation) -> Verdict:
    """See that bindings have users told of what is admitted in namespaces with `mode: warn` and would be denied."""
    policy = (on.admission_policies or {}).get(CREATED_POLICY)
    of_policy = [one for one in on.bindings or () if one.spec.policy_name == CREATED_POLICY]
    reaching = [one for one in of_policy if not any(_of_binding(CREATED_POLICY, one, own=_WARNED))]
    actions = {action for one in reaching for action in one.spec.validation_actions}
    lacking = ", ".join(action for action in _WARNING if action not in actions)
    if policy is None or not lacking:
        return OK
    if missing := not_seen(on, "namespaces"):
        return missing
    exempt = policy.spec.match_constraints.namespace_selector.excluded
    found = [
        f"{name} has the label {MODE_LABEL}=warn, and no binding of the policy {CREATED_POLICY} has {lacking} there: "
        "nobody is told of what it would deny"
        for name, one in sorted((on.namespaces or {}).items())
        if one.labels.get(MODE_LABEL) == "warn" and name not in exempt
    ]
    return warn(*cut(found), hint=APPLY)


def _of_webhook(webhook: Webhook) -> Iterator[str]:
    place, own = str(webhook.name), _OWN.get(webhook.name)
    yield from _not_asked(place, webhook.name, webhook.rules)
    yield from _narrowed(place, webhook.namespace_selector, own=own, by_name=True)
    yield from _of_one_version(place, webhook.match_policy)
    yield from _answered(place, webhook)
    yield from _understood(place, webhook)
    if own and not any(_is(one, own) for one in webhook.namespace_selector.conditions):
        yield f"{place} is asked in namespaces of the other webhook too, which denies what this one has granted"
    if webhook.name == EPHEMERAL_WEBHOOK_NAME:  # without its answer, a policy demands what it does
        yield from _of_shared_pods(place, webhook.object_selector)
        return
    if webhook.failure_policy != "Fail":
        yield f"{place} has failurePolicy: {webhook.failure_policy}: without an answer pods are admitted as they are"
    if not webhook.object_selector.selects_all:
        yield f"{place} has an objectSelector: pods with other labels are admitted as they are"
    if webhook.reinvocation_policy != "IfNeeded":
        yield f"{place} has reinvocationPolicy: {webhook.reinvocation_policy}: not asked of what others add after it"


def _answered(place: str, webhook: Webhook) -> Iterator[str]:
    path = MUTATE_RESTRICTED_PATH if webhook.name == RESTRICTED_WEBHOOK_NAME else MUTATE_PATH
    ours = Service(namespace=Shown(NAMESPACE), name=Shown(WEBHOOK_SERVICE), path=Shown(path))
    if webhook.client_config.service != ours:
        yield f"{place} is asked at {webhook.client_config.service or webhook.client_config.url}, not at {ours}"


def _understood(place: str, webhook: Webhook) -> Iterator[str]:
    """Tell of calls in an older version, by the rule of API servers: the first version that they know."""
    versions = [one for one in webhook.admission_review_versions if one in _REVIEW_VERSIONS]
    if versions and versions[0] != "v1":
        yield f"{place} has admissionReviewVersions: {versions[0]} first: the webhook answers v1 alone"


def _of_shared_pods(place: str, selector: Selector) -> Iterator[str]:
    if not all(_is(one, _SHARED) for one in selector.conditions):
        lacking = "not asked of all pods with a share, whose ephemeral containers are denied then"
        yield f"{place} has an objectSelector by other labels than {SHARED_LABEL}=true: {lacking}"


def _of_one_version(place: str, match_policy: str) -> Iterator[str]:
    if match_policy == "Exact":
        yield f"{place} has matchPolicy: Exact: what is written in another version of the API is admitted as it is"


def _of_policy(name: str, policy: AdmissionPolicy) -> Iterator[str]:
    place, constraints = f"the policy {name}", policy.spec.match_constraints
    yield from _not_asked(place, name, constraints.resource_rules)
    yield from _constrained(place, constraints, by_name=name in EXEMPTING_POLICIES)
    if policy.spec.failure_policy != "Fail":
        yield f"{place} has failurePolicy: {policy.spec.failure_policy}: what it fails to judge is admitted"
    if kind := policy.spec.param_kind:
        yield f"{place} has paramKind: {kind.kind}: where a binding finds none, it may be asked of nothing"


def _of_bindings(name: str, bindings: Iterable[Binding]) -> Iterator[str]:
    """Tell how far the bindings reach that have a policy deny, where none of them reaches all."""
    denying = [one for one in bindings if one.spec.policy_name == name and "Deny" in one.spec.validation_actions]
    own = _DENYING if name == CREATED_POLICY else None
    found = [[*_of_binding(name, one, own=own)] for one in denying]
    if all(found):
        yield from chain.from_iterable(found)
    if name == CREATED_POLICY:
        for one in denying:
            if one.spec.match_resources.namespace_selector.selects_all:
                yield f"{_place_of(one)} denies in namespaces with {MODE_LABEL}: warn, too"


def _of_binding(name: str, binding: Binding, *, own: Expression | None) -> Iterator[str]:
    place, resources = _place_of(binding), binding.spec.match_resources
    if resources.resource_rules:
        yield from _not_asked(place, name, resources.resource_rules)
    yield from _constrained(place, resources, own=own)


def _place_of(binding: Binding) -> str:
    return f"the binding {binding.metadata.name} of the policy {binding.spec.policy_name}"


def _constrained(
    place: str, constraints: MatchConstraints, *, own: Expression | None = None, by_name: bool = False
) -> Iterator[str]:
    yield from _narrowed(place, constraints.namespace_selector, own=own, by_name=by_name)
    yield from _of_one_version(place, constraints.match_policy)
    if not constraints.object_selector.selects_all:
        yield f"{place} has an objectSelector: objects with other labels are admitted as they are"
    if constraints.exclude_resource_rules:
        yield f"{place} has excludeResourceRules: what they name is admitted as it is"


def _not_asked(place: str, name: str, rules: tuple[Rule, ...]) -> Iterator[str]:
    operations, resources = (text.split() for text in _ASKED[name])
    lacking = [
        f"{operation} {resource}"
        for operation in operations
        for resource in resources
        if not any(_covers(one, operation, resource) for one in rules)
    ]
    if lacking:
        yield f"{place} is not asked of {', '.join(lacking)}"


def _covers(rule: Rule, operation: str, resource: str) -> bool:
    group = "" if resource.startswith("pods") else _OF_CLAIMS
    scope = "Cluster" if resource == "resourceslices" else "Namespaced"
    return rule.covers(operation, resource, group=group, scope=scope)


def _is(one: Expression, other: Expression) -> bool:
    return (one.key, one.operator, {*one.values}) == (other.key, other.operator, {*other.values})


def _narrowed(place: str, selector: Selector, *, own: Expression | None, by_name: bool) -> Iterator[str]:
    """Tell by which labels namespaces are left out, but for *own*, and exempt ones *by_name* (`of_second_places`)."""

    def is_known(one: Expression) -> bool:
        if by_name and (one.key, one.operator) == (NAME_LABEL, "NotIn"):
            return True
        return own is not None and _is(one, own)

    keys = {one.key for one in selector.conditions if not is_known(one)}
    if keys:
        yield f"{place} has a namespaceSelector by {', '.join(map(Shown, sorted(keys)))}: not asked in all namespaces"


REACH: Final = Check(
    name="admission-asked",
    says="webhook and policies are asked of all they are for",
    page="install.md#2-the-policies",
    judge=asked,
    absent=nothing_denies,
)
