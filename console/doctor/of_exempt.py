"""The check whether namespaces that are exempt by their names exist: whoever creates one is exempt with it."""

from typing import Final

from console.doctor.admission import EXEMPTING_POLICIES
from console.doctor.installation import Installation
from console.doctor.of_admission import has_one
from console.doctor.verdict import OK, Check, Verdict, cut, not_seen, warn
from policies.contract import NAMESPACE


def exist(on: Installation) -> Verdict:
    """See that the admission policies exempt no namespace that somebody has yet to create."""
    if missing := not_seen(on, "admission_policies", "namespaces"):
        return missing
    there = {NAMESPACE, *(on.namespaces or {})}
    exempting: dict[str, list[str]] = {}
    for policy in EXEMPTING_POLICIES:
        if made := (on.admission_policies or {}).get(policy):
            for name in made.spec.match_constraints.namespace_selector.excluded - there:
                exempting.setdefault(name, []).append(policy)
    if not exempting:
        return OK
    found = [f"{name} does not exist, and is exempt from {', '.join(by)}" for name, by in sorted(exempting.items())]
    hint = "take it out of the namespaceSelectors, or create it: whoever else creates it is not held to shares there"
    return warn(*cut(found), hint=hint)


def _nothing_exempts(on: Installation) -> str:
    return (
        "" if has_one(on, EXEMPTING_POLICIES) else "there is no admission policy that exempts namespaces by their names"
    )


EXEMPT: Final = Check(
    name="exempt-namespaces-exist",
    says="exempt namespaces exist",
    page="security.md#lock-down-a-cluster",
    judge=exist,
    absent=_nothing_exempts,
)
