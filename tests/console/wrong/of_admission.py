"""Installations in which the API server denies less than it should."""

from typing import Any

import msgspec

from console.doctor.installation import Installation
from tests.console.installations import Wrong, admission_policies, dra, installation, webhook
from tests.manifests.admission import BASE
from tests.manifests.render import MANIFESTS, render

LOCKDOWN = render(MANIFESTS / "components" / "lockdown")
UNBOUND = [one for one in LOCKDOWN if one["kind"] == "ValidatingAdmissionPolicy"]
TRIED = [one | {"spec": one["spec"] | {"validationActions": ["Warn", "Audit"]}} for one in LOCKDOWN]


def bound(**narrowed: Any) -> Installation:
    """One whose bindings reach what they are told."""
    bindings = [one for one in [*BASE, *LOCKDOWN] if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    policies = [one for one in [*BASE, *LOCKDOWN] if one["kind"] == "ValidatingAdmissionPolicy"]
    reaching = [{**one, "spec": {**one["spec"], "matchResources": narrowed}} for one in bindings]
    return installation(**admission_policies([*policies, *reaching]))


def without_denying() -> Installation:
    """One whose bindings only warn."""
    bindings = admission_policies()["bindings"]
    warning = [msgspec.structs.replace(one.spec, validation_actions=("Warn",)) for one in bindings]
    changed = zip(bindings, warning, strict=True)
    return installation(bindings=tuple(msgspec.structs.replace(one, spec=spec) for one, spec in changed))


def edited(kind: str, **changes: Any) -> Installation:
    """One whose admission policies have other constraints, or another *kind* of answer to what they fail to judge."""
    made = [one for one in [*BASE, *LOCKDOWN] if one["kind"] == "ValidatingAdmissionPolicy"]
    policies = []
    for one in made:
        constraints = {**one["spec"]["matchConstraints"], **changes}
        policies.append({**one, "spec": {**one["spec"], "failurePolicy": kind, "matchConstraints": constraints}})
    bindings = [one for one in [*BASE, *LOCKDOWN] if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    return installation(**admission_policies([*policies, *bindings]))


def of_pods(**changes: Any) -> dict[str, Any]:
    """Give a rule for pods as it is shipped, but for *changes*."""
    shipped = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*", "*"]}
    return {"resourceRules": [{**shipped, **changes}]}


def asked_by_labels(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


WRONG: list[Wrong] = [
    (
        "admission-policies",
        "warning",
        "the ValidatingAdmissionPolicy gpu-share-lockdown only warns: pods without a share can name GPUs",
        lambda: installation(**admission_policies([*BASE, *TRIED])),
    ),
    (
        "admission-policies",
        "failure",
        "there is no ValidatingAdmissionPolicy gpu-share-lockdown-claims: claims can be of GPUs by the DeviceClass of",
        lambda: installation(**admission_policies([*BASE, *LOCKDOWN[:1], *LOCKDOWN[2:]])),
    ),
    (
        "admission-policies",
        "failure",
        "no binding has the ValidatingAdmissionPolicy gpu-share-lockdown deny anything",
        lambda: installation(**admission_policies([*BASE, *UNBOUND])),
    ),
    (
        "admission-policies",
        "failure",
        "no ValidatingAdmissionPolicy gpu-share:",
        lambda: installation(admission_policies={}),
    ),
    (
        "admission-policies",
        "failure",
        "no binding has the ValidatingAdmissionPolicy gpu-share",
        without_denying,
    ),
    (
        "admission-policies",
        "failure",
        "no ValidatingAdmissionPolicy gpu-share-claims: who may create pods can use the claim, and so the GPU,",
        lambda: installation(**{**dra(), **admission_policies()}),
    ),
    (
        "admission-asked",
        "failure",
        "restricted-pods.gpu-share.dev has failurePolicy: Ignore: without an answer pods are admitted as they are",
        lambda: installation(webhook=webhook(failurePolicy="Ignore")),
    ),
    (
        "admission-asked",
        "failure",
        "pods.gpu-share.dev has an objectSelector: pods with other labels",
        lambda: installation(webhook=webhook(objectSelector=asked_by_labels(gpu="yes"))),
    ),
    (
        "admission-asked",
        "failure",
        "pods.gpu-share.dev has a namespaceSelector by gpu, team",
        lambda: installation(
            webhook=webhook(
                namespaceSelector={
                    **asked_by_labels(team="vision"),
                    "matchExpressions": [{"key": "gpu", "operator": "Exists"}],
                }
            )
        ),
    ),
    (
        "admission-asked",
        "failure",
        "ephemeral-containers.gpu-share.dev is not asked of UPDATE pods/ephemeralcontainers",
        lambda: installation(webhook=webhook(rules=[{"operations": ["*"], "resources": ["pods"]}])),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share-changes is not asked of UPDATE pods/resize, UPDATE pods/status the",
        lambda: edited(
            "Fail",
            **of_pods(operations=["CREATE", "UPDATE"], resources=["pods", "pods/ephemeralcontainers"]),
        ),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share-lockdown has failurePolicy: Ignore: what it fails to judge is admitted",
        lambda: edited("Ignore"),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share has an objectSelector",
        lambda: edited("Fail", objectSelector=asked_by_labels(gpu="yes")),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share has excludeResourceRules",
        lambda: edited("Fail", excludeResourceRules=[{"operations": ["*"], "resources": ["pods"]}]),
    ),
    (
        "admission-asked",
        "failure",
        "the binding gpu-share of the policy gpu-share has a namespaceSelector by team: not asked in all namespaces",
        lambda: bound(namespaceSelector=asked_by_labels(team="vision")),
    ),
    (
        "admission-asked",
        "failure",
        "the binding gpu-share-changes of the policy gpu-share-changes has an objectSelector",
        lambda: bound(objectSelector=asked_by_labels(gpu="yes")),
    ),
]
