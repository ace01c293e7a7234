"""Installations in which nobody is told of what is admitted in a namespace with `mode: warn`."""

from functools import partial
from typing import Any

from console.doctor.installation import Installation
from tests.console.installations import Wrong, admission_policies, installation, namespace
from tests.console.wrong.of_narrowed import by_name
from tests.manifests.admission import BASE

_LABEL = {"gpu-share.dev/mode": "warn"}


def tried(*specs: dict[str, Any], **changes: Any) -> Installation:
    """One with a namespace in `mode: warn`, and in the place of the binding that warns there what *specs* say."""
    kept = [one for one in BASE if one["metadata"]["name"] != "gpu-share-warn"]
    (shipped,) = (one for one in BASE if one not in kept)
    made = [{**shipped, "spec": {"policyName": "gpu-share", **spec}} for spec in specs]
    trial = namespace("team-vision", labels=_LABEL)
    return installation(**{**trial, **admission_policies([*kept, *made]), **changes})


def _lacking(actions: str, *specs: dict[str, Any]) -> Wrong:
    told = (
        f"team-vision has the label gpu-share.dev/mode=warn, and no binding of the policy gpu-share has {actions} there"
    )
    return "admission-asked", "warning", told, partial(tried, *specs)


def _reaching(**resources: Any) -> dict[str, Any]:
    return {"validationActions": ["Warn", "Audit"], "matchResources": resources}


WRONG: list[Wrong] = [
    _lacking("Warn, Audit"),
    _lacking("Warn", {"validationActions": ["Audit"]}),
    _lacking("Audit", {"validationActions": ["Warn"]}),
    _lacking("Warn, Audit", {**_reaching(), "policyName": "gpu-share-changes"}),
    _lacking("Warn, Audit", _reaching(namespaceSelector=by_name("NotIn", "gpu-share.dev/mode", "warn"))),
    _lacking("Warn, Audit", _reaching(namespaceSelector={"matchLabels": {"gpu-share.dev/mode": "warned"}})),
    _lacking("Warn, Audit", _reaching(namespaceSelector={"matchLabels": {**_LABEL, "team": "vision"}})),
    _lacking("Warn, Audit", _reaching(objectSelector={"matchLabels": {"team": "vision"}})),
    _lacking("Audit", {**_reaching(matchPolicy="Exact")}, {"validationActions": ["Warn"]}),
]
