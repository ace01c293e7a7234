"""Installations whose webhooks or admission policies are asked of less than is shipped, or judge by something else."""

from copy import deepcopy
from functools import partial
from typing import Any

from console.doctor.installation import Installation
from tests.console.installations import BY_DRA, Wrong, admission_policies, dra, installation, webhook
from tests.console.wrong.of_admission import asked_by_labels, bound, edited, of_pods
from tests.manifests.admission import BASE

OURS = "https://gpu-share-webhook.gpu-share.svc/mutate"


def by_name(operator: str, key: str = "kubernetes.io/metadata.name", value: str = "team-a") -> dict[str, Any]:
    """Give a selector of namespaces by one label."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}


def of_claims(policy: str, where: str) -> Installation:
    """One for DRA of which a policy of claims, or its binding, leaves out a namespace."""
    made = deepcopy(BY_DRA)
    for one in made:
        is_policy = one["kind"] == "ValidatingAdmissionPolicy" and one["metadata"]["name"] == policy
        is_binding = one["kind"] == "ValidatingAdmissionPolicyBinding" and one["spec"]["policyName"] == policy
        if is_policy if where == "matchConstraints" else is_binding:
            one["spec"].setdefault(where, {})["namespaceSelector"] = by_name("NotIn")
    return installation(**{**dra(), **admission_policies(made)})


def judging(**changes: Any) -> Installation:
    """One whose admission policies judge by something else."""
    made = [{**one, "spec": {**one["spec"], **changes}} for one in BASE if one["kind"] == "ValidatingAdmissionPolicy"]
    return installation(admission_policies=admission_policies(made)["admission_policies"])


def asked_at(**service: Any) -> Installation:
    """One whose webhooks are all asked at another place."""
    there = {"namespace": "gpu-share", "name": "gpu-share-webhook", "path": "/mutate", **service}
    return installation(webhook=webhook(clientConfig={"caBundle": "", "service": there}))


def selecting(**selector: Any) -> Installation:
    """One whose webhooks are asked of pods with some labels alone."""
    return installation(webhook=webhook(objectSelector=selector))


WRONG: list[Wrong] = [
    (
        "admission-asked",
        "failure",
        f"pods.gpu-share.dev is asked at https://gpu-share-webhook.old.svc/mutate, not at {OURS}",
        lambda: asked_at(namespace="old"),
    ),
    (
        "admission-asked",
        "failure",
        "restricted-pods.gpu-share.dev is asked at https://gpu-share-webhook.gpu-share.svc/mutate, not at",
        asked_at,
    ),
    (
        "admission-asked",
        "failure",
        f"pods.gpu-share.dev is asked at https://gpu-share-webhook.gpu-share.svc:8443/mutate, not at {OURS}",
        lambda: asked_at(port=8443),
    ),
    (
        "admission-asked",
        "failure",
        "restricted-pods.gpu-share.dev has admissionReviewVersions: v1beta1 first: the webhook answers v1 alone",
        lambda: installation(webhook=webhook(admissionReviewVersions=["v2", "v1beta1", "v1"])),
    ),
    *(
        (
            "admission-asked",
            "failure",
            "ephemeral-containers.gpu-share.dev has an objectSelector by other labels than gpu-share.dev/shared=true",
            partial(selecting, **selector),
        )
        for selector in (
            asked_by_labels(**{"gpu-share.dev/shared": "yes"}),
            asked_by_labels(**{"gpu-share.dev/shared": "true", "team": "vision"}),
            by_name("Exists", "team"),
        )
    ),
    (
        "admission-asked",
        "failure",
        "pods.gpu-share.dev is asked at https://10.0.0.7/mutate, not at",
        lambda: installation(webhook=webhook(clientConfig={"url": "https://10.0.0.7/mutate"})),
    ),
    (
        "admission-asked",
        "failure",
        "pods.gpu-share.dev has reinvocationPolicy: Never: not asked of what others add after it",
        lambda: installation(webhook=webhook(reinvocationPolicy="Never")),
    ),
    (
        "admission-asked",
        "failure",
        "ephemeral-containers.gpu-share.dev has matchPolicy: Exact: what is written in another version of the API",
        lambda: installation(webhook=webhook(matchPolicy="Exact")),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share-lockdown-claims has matchPolicy: Exact",
        lambda: edited("Fail", matchPolicy="Exact"),
    ),
    (
        "admission-asked",
        "failure",
        "the binding gpu-share of the policy gpu-share denies in namespaces with gpu-share.dev/mode: warn, too",
        bound,
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share has paramKind: ConfigMap: where a binding finds none, it may be asked of nothing",
        lambda: judging(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share has a namespaceSelector by kubernetes.io/metadata.name: not asked in all namespaces",
        lambda: edited("Fail", namespaceSelector=by_name("In")),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share-changes has a namespaceSelector by kubernetes.io/metadata.name",
        lambda: edited("Fail", namespaceSelector=asked_by_labels(**{"kubernetes.io/metadata.name": "team-a"})),
    ),
    (
        "admission-asked",
        "failure",
        "restricted-pods.gpu-share.dev has a namespaceSelector by pod-security.kubernetes.io/enforce",
        lambda: installation(
            webhook=webhook(namespaceSelector=by_name("In", "pod-security.kubernetes.io/enforce", "baseline"))
        ),
    ),
    (
        "admission-asked",
        "failure",
        "the binding gpu-share of the policy gpu-share has a namespaceSelector by gpu-share.dev/mode",
        lambda: bound(namespaceSelector=by_name("In", "gpu-share.dev/mode", "warn")),
    ),
    (
        "admission-asked",
        "failure",
        "the binding gpu-share of the policy gpu-share is not asked of CREATE pods",
        lambda: bound(resourceRules=of_pods(apiGroups=["apps"])["resourceRules"]),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share is not asked of CREATE pods",
        lambda: edited("Fail", **of_pods(scope="Cluster")),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share is not asked of CREATE pods",
        lambda: edited("Fail", **of_pods(resourceNames=["one"])),
    ),
    (
        "admission-asked",
        "failure",
        "the policy gpu-share is not asked of CREATE pods",
        lambda: edited("Fail", **of_pods(apiVersions=["v2"])),
    ),
    (
        "admission-shipped",
        "warning",
        "the policy gpu-share-changes does not judge by what this version of gpu-share ships",
        lambda: judging(validations=[{"expression": "true"}]),
    ),
    (
        "admission-shipped",
        "warning",
        "the policy gpu-share does not judge by",
        lambda: judging(matchConditions=[{"name": "never", "expression": "false"}]),
    ),
    (
        "admission-shipped",
        "warning",
        "the policy gpu-share does not judge by",
        lambda: judging(variables=[{"name": "shared", "expression": "false"}]),
    ),
    (
        "admission-shipped",
        "warning",
        "restricted-pods.gpu-share.dev does not judge by",
        lambda: installation(webhook=webhook(matchConditions=[{"name": "never", "expression": "false"}])),
    ),
    (
        "admission-asked",
        "failure",
        "of the policy gpu-share-changes has a namespaceSelector by kubernetes.io/metadata.name",
        lambda: bound(namespaceSelector=by_name("NotIn")),
    ),
    (
        "admission-asked",
        "failure",
        "the binding gpu-share-changes of the policy gpu-share-changes has a namespaceSelector by gpu-share.dev/mode",
        lambda: bound(namespaceSelector=by_name("NotIn", "gpu-share.dev/mode", "warn")),
    ),
    *(
        (
            "admission-asked",
            "failure",
            f"{policy} has a namespaceSelector by kubernetes.io/metadata.name",
            partial(of_claims, policy.rpartition(" ")[2], where),
        )
        for policy in ("gpu-share-claims", "gpu-share-claim-templates", "gpu-share-allocations")
        for where in ("matchConstraints", "matchResources")
    ),
    (
        "admission-asked",
        "failure",
        "pods.gpu-share.dev is asked in namespaces of the other webhook too, which denies what this",
        lambda: installation(webhook=webhook(namespaceSelector=by_name("NotIn", value="kube-system"))),
    ),
]
