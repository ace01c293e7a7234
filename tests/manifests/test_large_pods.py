"""The API server looks through no large pod: its macros take the square of what they run over."""

import re
from collections.abc import Callable
from copy import deepcopy

import pytest

from policies.size import MOST_ANNOTATIONS, MOST_CONTAINERS, MOST_OTHERS, MOST_VOLUMES
from tests.bypass.attempt import forged
from tests.manifests.admission import BASE, Expressions, policy, policy_spec, stored, webhook_conditions
from tests.manifests.render import MANIFESTS, Object, render
from tests.policies.pods import container, mutated, pod

WEBHOOK, POLICY, CHANGES = webhook_conditions(BASE), policy(BASE), policy(BASE, "gpu-share-changes")
LOCKED = render(MANIFESTS / "components" / "lockdown")
LOCKDOWN = policy(LOCKED, "gpu-share-lockdown")
RUNNING, PLAIN = stored(mutated(pod("0.2"))), stored(pod(None))
SPECS = {
    "gpu-share": policy_spec(BASE),
    "gpu-share-changes": policy_spec(BASE, "gpu-share-changes"),
    "gpu-share-lockdown": policy_spec(LOCKED, "gpu-share-lockdown"),
}
ENTRIES = 8193  # one more than all containers may have together


def _annotated(on: Object, count: int) -> None:
    annotations = on["metadata"].setdefault("annotations", {})
    annotations |= {f"x{number}": "" for number in range(count - len(annotations))}


def _first(on: Object) -> Object:
    one: Object = on["spec"]["containers"][0]
    return one


FILLED: dict[str, Callable[[Object], object]] = {
    "annotations": lambda on: _annotated(on, MOST_OTHERS + 1),
    "volumes": lambda on: on["spec"].update(volumes=[{"name": "v", "emptyDir": {}}] * (MOST_VOLUMES + 2)),
    "containers": lambda on: on["spec"]["containers"].extend([container("c")] * MOST_CONTAINERS),
    "init containers": lambda on: on["spec"].update(initContainers=[container("c")] * MOST_CONTAINERS),
    "variables": lambda on: _first(on).update(env=[{"name": "A"}] * ENTRIES),
    "variables of two containers": lambda on: on["spec"]["containers"].extend(
        container(name, env=[{"name": "A"}] * (ENTRIES // 2 + 1)) for name in "xy"
    ),
    "references": lambda on: _first(on).update(envFrom=[{"configMapRef": {"name": "a"}}] * ENTRIES),
    "mounts": lambda on: _first(on).update(volumeMounts=[{"name": "v", "mountPath": "/v"}] * ENTRIES),
    "devices": lambda on: _first(on).update(volumeDevices=[{"name": "v", "devicePath": "/v"}] * ENTRIES),
    "capabilities": lambda on: _first(on).update(securityContext={"capabilities": {"add": ["KILL"] * ENTRIES}}),
    "limits": lambda on: _first(on)["resources"].setdefault("limits", {}).update(
        {f"a/x{number}": "1" for number in range(ENTRIES)}
    ),
    "requests": lambda on: _first(on)["resources"].update(requests={f"a/x{number}": "1" for number in range(ENTRIES)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLED)
def test_a_large_pod_with_a_share_is_denied_for_its_size_before_anything_else(name: str) -> None:
    on = stored(forged())
    FILLED[name](on)
    assert POLICY.denials(on)[0].startswith(
        "A pod with a GPU share, or with limits of one, has more than 1024 annotations"
    )


@pytest.mark.parametrize("name", FILLED)
def test_a_large_pod_is_denied_for_its_size_where_all_pods_are_looked_through(name: str) -> None:
    on = deepcopy(PLAIN)
    FILLED[name](on)
    (said,) = LOCKDOWN.denials(on)
    assert "none may have more than 1024 annotations" in said


@pytest.mark.parametrize("name", ["annotations", "containers", "variables"])
def test_the_status_of_a_large_pod_from_before_is_written(name: str) -> None:
    for before, expressions in ((deepcopy(PLAIN), LOCKDOWN), (deepcopy(RUNNING), CHANGES)):
        FILLED[name](before)
        assert expressions.denials(before | {"status": {"phase": "Running"}}, before) == []


def test_what_the_webhook_grants_at_its_limits_the_api_server_admits_with_what_a_share_adds() -> None:
    written = pod("0.2", volumes=[{"name": f"v{number}", "emptyDir": {}} for number in range(MOST_VOLUMES)])
    _annotated(written, MOST_ANNOTATIONS)
    on = mutated(written)
    again = mutated(on)
    assert (len(on["spec"]["volumes"]), len(on["metadata"]["annotations"])) == (MOST_VOLUMES + 1, MOST_OTHERS)
    assert again == on
    assert POLICY.denials(stored(on)) == []
    assert LOCKDOWN.denials(stored(on)) == []


def test_a_pod_at_the_limits_is_looked_through_as_ever() -> None:
    on = deepcopy(RUNNING)
    _annotated(on, MOST_OTHERS)
    _first(on)["env"] = [{"name": "A", "value": "b"}] * 400
    assert POLICY.denials(on) == []
    assert LOCKDOWN.denials(on) == []
    _first(on)["env"].append({"name": "CUDA_VISIBLE_DEVICES", "value": "0"})
    assert len(POLICY.denials(on)) == 1


@pytest.mark.parametrize("name", ["annotations", "containers", "init containers", "limits", "requests"])
def test_the_webhook_is_asked_where_the_conditions_look_no_further(name: str) -> None:
    on = deepcopy(PLAIN)
    FILLED[name](on)
    assert WEBHOOK.matches(on)
    assert POLICY.matches(on) is (name != "annotations")  # none of them gets a share without a limit


def test_a_share_among_many_annotations_is_seen() -> None:
    for key in ("gpu-share", "gpu-share.dev/share", "gpu-share.dev/grant"):
        on = deepcopy(PLAIN)
        on["metadata"]["annotations"] = {key: "0.2"}
        _annotated(on, 5000)
        assert POLICY.matches(on)
        assert CHANGES.matches(on, PLAIN)
    assert not CHANGES.matches(stored(pod(None, annotations={f"x{number}": "" for number in range(5000)})), PLAIN)


@pytest.mark.parametrize(("expressions", "before"), [(CHANGES, RUNNING), (LOCKDOWN, PLAIN)], ids=["share", "lockdown"])
def test_annotations_beyond_the_limit_are_not_added_and_those_of_before_stay(
    expressions: Expressions, before: Object
) -> None:
    full, larger = deepcopy(before), deepcopy(before)
    _annotated(full, MOST_OTHERS)
    _annotated(larger, MOST_OTHERS + 1)
    assert expressions.denials(full, before) == []
    (said,) = expressions.denials(larger, full)
    assert "more than 1024 annotations" in said
    reported = deepcopy(larger) | {"status": {"phase": "Running"}}
    assert expressions.denials(reported, larger) == []
    changed = deepcopy(larger)
    changed["metadata"]["annotations"]["x7"] = "new"
    assert len(expressions.denials(changed, larger)) == 1


@pytest.mark.parametrize(("expressions", "before"), [(CHANGES, RUNNING), (LOCKDOWN, PLAIN)], ids=["share", "lockdown"])
@pytest.mark.parametrize(("count", "variables"), [(MOST_CONTAINERS + 1, 1), (2, ENTRIES // 2)])
def test_ephemeral_containers_are_counted_where_some_are_added(
    expressions: Expressions, before: Object, count: int, variables: int
) -> None:
    new = deepcopy(before)
    hidden = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}, *[{"name": "A"}] * variables]
    new["spec"]["ephemeralContainers"] = [container(f"d{number}", env=hidden) for number in range(count)]
    (said,) = expressions.denials(new, before)
    assert "8192" in said
    assert expressions.denials(deepcopy(new) | {"status": {}}, new) == []


@pytest.mark.parametrize("name", SPECS)
def test_no_macro_runs_over_a_list_of_the_pod_itself_but_where_its_size_is_looked_at(name: str) -> None:
    spec = SPECS[name]
    macro = re.compile(r"(object|oldObject|p)[.](metadata|spec)[.][A-Za-z]+[.](all|exists|filter|map)[(]")
    expressions = [one["expression"] for one in (*spec["matchConditions"], *spec["variables"], *spec["validations"])]
    over_lists = [text for text in expressions if macro.search(text)]
    assert over_lists
    for text in over_lists:
        # Ephemeral containers of before are as many as could be added; their names alone are read.
        names_alone = text.endswith(" ? oldObject.spec.ephemeralContainers.map(c, c.name) : []")
        assert names_alone or re.search(r"size[(][)] <= 1024|variables[.](large|ephemeral)", text), text
