"""What is wrong and cannot be seen is not in order, whichever of all that is looked at cannot be."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from console.doctor.installation import Installation
from console.doctor.report import AFTER, findings
from console.seen import ALL_NODES, DENIED_PODS, OUR_PODS, SHARED_PODS, STATES, Seen, SeenNode, Unseen
from policies.node_state import Ages
from tests.console.installations import installation, nodes, seen
from tests.console.objects import failed_gpu, gpu, state
from tests.console.test_doctor_checks import FINE, WRONG

CHECKS = {check.name: check for _, checks in AFTER for check in checks}
_FIELDS = ("version", "apis", "gates", "classes", "slices", "toolkits", "webhook", "admission_policies", "bindings")
_MORE_FIELDS = ("attempt", "serving_certificate", "policies", "namespaces")


@cache
def wrong() -> tuple[tuple[str, str, str, Installation], ...]:
    return tuple((check, status, told, made()) for check, status, told, made in WRONG)


def silent(node: SeenNode) -> SeenNode:
    return msgspec.structs.replace(node, state=None, silent=Unseen(what=node.name, why="forbidden", right="get it"))


def unknown(node: SeenNode) -> SeenNode:
    return SeenNode(name=node.name, state=node.state, silent=node.silent)


def without_node(on: Installation, what: str) -> Installation:
    """One of which something cannot be listed, or no node and no webhook pod answers."""
    nodes = on.seen.nodes
    changes: dict[str, dict[str, Any]] = {
        OUR_PODS: {"parts": (), "nodes": tuple(msgspec.structs.replace(one, state=None) for one in nodes)},
        STATES: {"nodes": tuple(map(silent, nodes))},
        SHARED_PODS: {"pods": ()},
        ALL_NODES: {"nodes": tuple(unknown(one) for one in nodes if one.state or one.silent)},
        DENIED_PODS: {"denials": ()},
    }
    answers = {OUR_PODS: {}, STATES: dict.fromkeys(on.ready, "no answer: forbidden")}
    unseen = (*on.seen.unseen, Unseen(what=what, why="forbidden", right="see it"))
    hidden: Seen = msgspec.structs.replace(on.seen, unseen=unseen, **changes[what])
    return msgspec.structs.replace(on, seen=hidden, ready=answers.get(what, on.ready))


def without_field(on: Installation, field: str) -> Installation:
    also = {"policies": {"policy_problems": None}, "webhook": {"has_webhook": None}}.get(field, {})
    unseen = {**on.unseen, field: Unseen(what=field, why="forbidden", right=field)}
    return msgspec.structs.replace(on, **{field: None, **also}, unseen=unseen)


@pytest.mark.parametrize(
    ("hide", "what"),
    [
        *((without_node, what) for what in (OUR_PODS, STATES, SHARED_PODS, ALL_NODES, DENIED_PODS)),
        *((without_field, field) for field in (*_FIELDS, *_MORE_FIELDS)),
    ],
)
def test_what_is_wrong_is_not_in_order_where_it_cannot_be_seen(
    hide: Callable[[Installation, str], Installation], what: str
) -> None:
    fine = []
    for check, status, told, made in wrong():
        (found,) = findings(hide(made, what), (("", (CHECKS[check],)),))
        if status not in FINE and found.status in FINE:
            fine.append(f"{check}: {told}")
    assert fine == []


def test_where_one_node_says_nothing_no_check_says_that_all_is_well_with_gpus() -> None:
    lost = state(failed_gpu(), on="gpu-1", ages=Ages(health=3600.0))
    resting = [check for check in CHECKS.values() if STATES in check.rests_on]
    assert len(resting) > 8
    for other in (None, lost):
        on = installation(seen(**nodes(state(gpu(), on="gpu-0"), other)))
        found = findings(on, (("", resting),))
        assert [one.check for one in found if one.status in FINE] == []
        said = {one.check: one.found[0] for one in found if one.status == "unknown"}
        assert said["gpus-healthy"].startswith("1 of 2 nodes not seen: gpu-1: ")


def test_a_fault_that_is_seen_stays_one_though_another_node_says_nothing() -> None:
    on = installation(seen(**nodes(state(failed_gpu(), on="gpu-0"), None)))
    (found,) = findings(on, (("", (CHECKS["gpus-healthy"],)),))
    assert found.status == "failure"
