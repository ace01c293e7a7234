"""The check whether webhooks and admission policies judge by what this version ships."""

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from console.doctor.admission import AdmissionPolicy, MatchCondition, WebhookConfiguration
from console.doctor.installation import Installation
from console.doctor.of_admission import nothing_denies
from console.doctor.shipped import SHIPPED
from console.doctor.verdict import APPLY, Check, Verdict, of_this_version, policies_of, warn
from policies.cluster import Cluster
from policies.contract import WEBHOOK_NAMES

_PAGE: Final = "install.md#2-the-policies"
_SET: Final = ("resources", "pipes")  # variables that have settings of `_cluster.yaml`, for which `of_second_places` is
_SCHEDULERS: Final = re.compile(r"username in \[[^\]]*\]")  # who may change claims: docs/install.md has others added
_DIGITS: Final = 16


def as_shipped(on: Installation) -> Verdict:
    """See that conditions, variables and validations are those of this version, but for the settings in them."""
    policies = policies_of(on, "webhook", "admission_policies")
    if isinstance(policies, Verdict):
        return policies
    seen = dict(digests(on.webhook, (on.admission_policies or {}).values(), policies.cluster))
    found = (
        f"{place} does not judge by what this version of gpu-share ships"
        for place, digest in seen.items()
        if place in SHIPPED and digest != SHIPPED[place]
    )
    made = warn(*found, hint=f"{APPLY}, in the version of this gpu-share; what was changed by hand is lost")
    return of_this_version(made, on)


def digests(
    webhook: WebhookConfiguration | None, policies: Iterable[AdmissionPolicy], cluster: Cluster
) -> Iterator[tuple[str, str]]:
    """Say of each webhook and admission policy by what it judges, but for settings of *cluster*, as a digest."""
    for one in webhook.webhooks if webhook else ():
        if one.name in WEBHOOK_NAMES:
            yield str(one.name), _digest(_written(one.match_conditions), cluster)
    for policy in policies:
        spec = policy.spec
        variables = [(one.name, one.expression) for one in spec.variables if one.name not in _SET]
        validations = [(one.expression, one.message, one.message_expression) for one in spec.validations]
        text = [_written(spec.match_conditions), variables, validations]
        yield f"the policy {policy.metadata.name}", _digest(text, cluster)


def _written(conditions: Iterable[MatchCondition]) -> list[tuple[str, str]]:
    return [(one.name, one.expression) for one in conditions]


def _digest(judged_by: object, cluster: Cluster) -> str:
    text = json.dumps(judged_by)
    settings = [*cluster.resource_names.items(), ("pipes", cluster.mps.pipe_directory)]
    for name, value in settings:
        text = text.replace(f"'{value}'", f"'({name})'")
    text = _SCHEDULERS.sub("username in ()", text)
    return sha256(text.encode()).hexdigest()[:_DIGITS]


SHIPPED_RULES: Final = (
    Check(
        name="admission-shipped",
        says="webhook and policies judge by what this version ships",
        page=_PAGE,
        judge=as_shipped,
        absent=nothing_denies,
    ),
)
