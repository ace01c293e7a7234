"""The check whether the API server itself denies what gpu-share does not grant."""

from collections.abc import Iterable
from typing import Final

from console.doctor import of_dra
from console.doctor.admission import CHANGED_POLICY, CREATED_POLICY, LOCKDOWN_CLAIMS_POLICY, LOCKDOWN_POLICY
from console.doctor.installation import Installation
from console.doctor.verdict import APPLY, OK, Check, Verdict, fail, not_seen, warn
from policies.contract import NAMESPACE, WEBHOOK_NAMES

_OF_PODS: Final = "what users forge, or add later, is admitted"
# What is so without each of them.
_POLICIES: Final = {CREATED_POLICY: _OF_PODS, CHANGED_POLICY: _OF_PODS}
_POLICIES_OF_LOCKDOWN: Final = {
    LOCKDOWN_POLICY: "pods without a share can name GPUs",
    LOCKDOWN_CLAIMS_POLICY: "claims can be of GPUs by the DeviceClass of another driver",
}
_POLICIES_OF_DRA: Final = {
    f"{NAMESPACE}-claims": "who may create pods can use the claim, and so the GPU, of others",
    f"{NAMESPACE}-claim-templates": "who may write templates of claims gets any share",
    f"{NAMESPACE}-allocations": "a claim of a DeviceClass that leaves the driver open is allocated shares",
    f"{NAMESPACE}-slices": "the plugin of one node can publish the GPUs of another",
}
_NAMES: Final = frozenset({*WEBHOOK_NAMES, *_POLICIES, *_POLICIES_OF_LOCKDOWN, *_POLICIES_OF_DRA})
_FILES_OF_DRA: Final = "manifests/overlays/dra/driver/admission-policy"


def policed(on: Installation) -> Verdict:
    """See that the API server validates pods with a share itself, and by DRA their claims."""
    if missing := not_seen(on, "admission_policies", "bindings"):
        return missing
    there, by_dra = on.admission_policies or {}, of_dra.is_used(on)
    locked = _POLICIES_OF_LOCKDOWN if any(name in there for name in _POLICIES_OF_LOCKDOWN) else {}
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
        return of_dra.unless_used(OK, on)
    without_dra = f"; where that has nothing of DRA, kubectl apply -f {' -f '.join(dict.fromkeys(files))}"
    return fail(*found, hint=f"{APPLY}{without_dra if files else ''}")


def nothing_denies(on: Installation) -> str:
    """Say that neither webhook nor admission policies are there, where that is so."""
    there = {str(one.name) for one in on.webhook.webhooks} if on.webhook else set()
    is_one = not _NAMES.isdisjoint({*there, *(on.admission_policies or {})})
    return "" if is_one else "there is neither the webhook nor an admission policy"


def has_one(on: Installation, names: Iterable[str]) -> bool:
    """Whether one of the admission policies of these *names* is there."""
    return not (on.admission_policies or {}).keys().isdisjoint(names)


ADMISSION: Final = Check(
    name="admission-policies",
    says="the API server checks pods itself",
    page="install.md#2-the-policies",
    judge=policed,
)
