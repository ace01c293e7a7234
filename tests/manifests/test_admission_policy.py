"""The policy in the API server admits what the webhook grants, and denies every change of limits or grant."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from policies import contract
from policies.grant import Denied
from tests.manifests.admission import BASE, policy, policy_spec, selects, stored
from tests.manifests.granted_pods import GRANTED, examples, first_sharing, grant_of, granted, one
from tests.manifests.render import Object
from tests.policies.pods import (
    GPU,
    TIMESLICED,
    VGPU,
    container,
    decided,
    limited,
    pod,
)

POLICY = policy(BASE)

Change = Callable[[Object], None]


@pytest.mark.parametrize("name", GRANTED)
def test_a_pod_that_the_webhook_granted_is_admitted(name: str) -> None:
    assert POLICY.matches(one(name))
    assert POLICY.denials(one(name)) == []


@pytest.mark.parametrize("name", [name for name, on, by, ns in examples() if isinstance(decided(on, by, ns), Denied)])
def test_a_pod_that_the_webhook_would_deny_is_denied_without_it(name: str) -> None:
    (on,) = (on for example, on, _, _ in examples() if example == name)
    assert POLICY.denials(stored(on))[0].startswith("The pod asks for a GPU share or claims one, but")


def set_grant(on: Object, text: str) -> None:
    on["metadata"]["annotations"][contract.GRANT_ANNOTATION] = text


def set_limit(of: Object, count: str | None, resource: str = VGPU) -> None:
    for field in ("limits", "requests"):
        if count is None:
            of["resources"][field] = {}
        else:
            of["resources"].setdefault(field, {})[resource] = count


def resource_of(on: Object) -> str:
    """Of the pod's limits: the one of the grant, or by DRA and of partitions that of the first container in it."""
    grant = json.loads(grant_of(on))
    name: str = grant["resource"] if is_by_vgpus(grant) else next(iter(grant["containers"].values()))["resource"]
    return name


def is_by_vgpus(grant: Any) -> bool:
    return "resource" in grant


def limit_raised(on: Object) -> None:
    set_limit(first_sharing(on), "9", resource_of(on))


def request_raised(on: Object) -> None:
    first_sharing(on)["resources"]["requests"][resource_of(on)] = "7"


def limit_removed(on: Object) -> None:
    set_limit(first_sharing(on), None)


def other_resource_added(on: Object) -> None:
    set_limit(first_sharing(on), "1", TIMESLICED if resource_of(on) == VGPU else VGPU)


def whole_gpu_added(on: Object) -> None:
    set_limit(first_sharing(on), "1", VGPU if resource_of(on) == GPU else GPU)


def sharing_container_added(on: Object) -> None:
    on["spec"]["containers"].append(stored(pod(None, limited("added")))["spec"]["containers"][0])


def sharing_init_container_added(on: Object) -> None:
    added = stored(pod(None, limited("added")))["spec"]["containers"][0]
    on["spec"].setdefault("initContainers", []).append(added)


def container_requesting_alone_added(on: Object) -> None:
    on["spec"]["containers"].append(container("added", resources={"requests": {resource_of(on): "1"}}))


def grant_removed(on: Object) -> None:
    del on["metadata"]["annotations"][contract.GRANT_ANNOTATION]


def grant_emptied(on: Object) -> None:
    set_grant(on, "")


def grant_raised(on: Object) -> None:
    raised = re.sub(r'"vgpus":\d+', '"vgpus":8', grant_of(on), count=1)
    raised = re.sub(r'"count":\d+', '"count":9', raised, count=1)
    set_grant(on, re.sub(r"share-\d+m", "share-900m", raised, count=1))


def grant_of_another_resource(on: Object) -> None:
    set_grant(on, grant_of(on).replace(f'"resource":"{resource_of(on)}"', '"resource":"example.com/gpu"'))


def grant_of_another_strategy(on: Object) -> None:
    other = "time-slicing" if '"whole"' in grant_of(on) else "whole"
    set_grant(on, re.sub(r'"strategy":"[^"]*"(,"attach":"[^"]*")?', f'"strategy":"{other}"', grant_of(on)))


def grant_for_one_more(on: Object) -> None:
    set_grant(on, grant_of(on).replace('"containers":{', '"containers":{"ghost":{"vgpus":1,"share":"0.1","of":10},'))


def grant_written_otherwise(on: Object) -> None:
    set_grant(on, json.dumps(json.loads(grant_of(on))))


def grant_with_something_behind(on: Object) -> None:
    set_grant(on, grant_of(on) + "\n")


def grant_in_the_name_of_a_policy(on: Object) -> None:
    inner = json.dumps(grant_of(on))
    set_grant(on, f'{{"policy":{inner},"strategy":"mps","attach":"pod","resource":"{VGPU}","containers":{{}}}}')


def label_removed(on: Object) -> None:
    del on["metadata"]["labels"]


def label_changed(on: Object) -> None:
    on["metadata"]["labels"][contract.SHARED_LABEL] = "false"


def annotation_added(on: Object) -> None:
    on["metadata"]["annotations"]["container.gpu-share.dev/other"] = "0.2"


TAMPERED: list[Change] = [
    limit_raised,
    request_raised,
    limit_removed,
    other_resource_added,
    whole_gpu_added,
    sharing_container_added,
    sharing_init_container_added,
    container_requesting_alone_added,
    grant_removed,
    grant_emptied,
    grant_raised,
    grant_of_another_resource,
    grant_of_another_strategy,
    grant_for_one_more,
    grant_written_otherwise,
    grant_with_something_behind,
    grant_in_the_name_of_a_policy,
    label_removed,
    label_changed,
    annotation_added,
]


@pytest.mark.parametrize("change", TAMPERED, ids=lambda change: change.__name__)
def test_every_change_of_limits_or_grant_is_denied(change: Change) -> None:
    for name in GRANTED:
        on = one(name)
        change(on)
        assert on != granted()[name], name
        assert POLICY.denials(on) != [], name


def test_a_grant_without_any_one_of_its_characters_is_denied() -> None:
    text = grant_of(one("two shares"))
    read = json.loads(text)
    for index in range(len(text)):
        on = one("two shares")
        shorter = text[:index] + text[index + 1 :]
        set_grant(on, shorter)
        # The policy's name, the share and the vGPUs per GPU only inform: the limits decide what a container gets.
        try:
            same = all(json.loads(shorter)[key] == read[key] for key in ("strategy", "attach", "resource"))
            counts = [name_and_count(grant) for grant in (json.loads(shorter), read)]
        except (ValueError, KeyError):
            same, counts = False, [[], []]
        if not same or counts[0] != counts[1]:
            assert POLICY.denials(on) != [], shorter


def name_and_count(grant: Any) -> list[tuple[str, int]]:
    return [(name, one["vgpus"]) for name, one in grant["containers"].items()]


def test_a_forged_grant_or_label_is_denied() -> None:
    forged = pod(None, annotations={contract.GRANT_ANNOTATION: grant_of(one("one"))})
    forged["metadata"]["labels"] = {contract.SHARED_LABEL: "true"}
    (said,) = POLICY.denials(stored(forged))
    assert said.startswith(f"No container of the pod has a limit of {VGPU}, so it has no GPU share: ask for one")
    del forged["metadata"]["annotations"]
    (said_of_label,) = POLICY.denials(stored(forged))
    assert said_of_label.startswith("The pod has the label gpu-share.dev/shared")


def test_every_denial_says_in_one_sentence_what_is_wrong_and_what_to_do() -> None:
    for one_policy in ("gpu-share", "gpu-share-changes"):
        for validation in policy_spec(BASE, one_policy)["validations"]:
            text = validation.get("message") or validation["messageExpression"]
            assert "\n" not in text
            assert text.rstrip("'").endswith(".")
            assert text.count(". ") == 0
            assert len(text) <= 256


def test_a_namespace_with_the_label_for_mode_warn_gets_warnings_instead() -> None:
    bindings = {
        one["metadata"]["name"]: one["spec"]
        for one in BASE
        if one["kind"] == "ValidatingAdmissionPolicyBinding" and one["spec"]["policyName"] == "gpu-share"
    }
    assert {name: spec["validationActions"] for name, spec in bindings.items()} == {
        "gpu-share": ["Deny"],
        "gpu-share-warn": ["Warn", "Audit"],
    }
    for labels, binding in (
        ({}, "gpu-share"),
        ({"gpu-share.dev/mode": "enforce"}, "gpu-share"),
        ({"gpu-share.dev/mode": "warn"}, "gpu-share-warn"),
    ):
        found = [
            name for name, spec in bindings.items() if selects(spec["matchResources"]["namespaceSelector"], labels)
        ]
        assert found == [binding]


def test_the_policies_fail_closed() -> None:
    for name in ("gpu-share", "gpu-share-changes"):
        assert policy_spec(BASE, name)["failurePolicy"] == "Fail"
