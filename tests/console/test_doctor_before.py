"""What `gpu-share doctor --pre` looks at before an installation."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from click.testing import Result

from console.doctor.report import AFTER, BEFORE, findings
from console.doctor.rights import Right
from console.words import Shown
from tests.console.installations import (
    dra,
    installation,
    seen,
)
from tests.console.stand_in import Reply, StandIn
from tests.manifests.admission import BASE

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_ALL = Right("*", "*", "*")


def test_before_an_installation_a_disabled_gate_is_told_and_no_failure() -> None:
    found = {one.check: one for one in findings(installation(gates={"DRAExtendedResource": False}), BEFORE)}
    assert (found["feature-gates"].status, found["feature-gates"].found) == (
        "warning",
        ("the feature gate DRAExtendedResource is disabled",),
    )


def test_before_an_installation_no_node_needs_a_label() -> None:
    found = {one.check: one.status for one in findings(installation(seen(nodes=())), BEFORE)}
    assert (found["nodes-labelled"], found["other-plugins"]) == ("not-applicable", "not-applicable")


def test_before_an_installation_each_right_is_asked_for_that_applying_the_manifests_takes(
    asked: Callable[..., Result],
) -> None:
    known = StandIn()
    known.posted[_REVIEWS] = (201, b'{"status": {"allowed": false}}')
    ran = asked(known, "doctor", "--pre")
    assert set(_asked(known)) == {_ALL, *_of_applying(), *_of_granting()}
    assert "you may not get, create, patch daemonsets" in ran.stdout
    assert "list nodes, list pods, list events" in ran.stdout


@pytest.mark.parametrize(
    ("has", "lacking"),
    [
        (
            lambda right: (right in _of_applying() and right.verb != "patch") or right.verb in ("escalate", "bind"),
            "patch",
        ),
        (lambda right: right in _of_applying() or right.verb == "escalate", "grant"),
        (lambda right: right in _of_applying() or right.verb in ("escalate", "bind"), ""),
        (lambda right: right in (*_of_applying(), *_of_granting()) and right.verb not in ("escalate", "bind"), ""),
        (lambda right: right == _ALL, ""),
    ],
    ids=["no-patch", "no-bind", "escalate-and-bind", "what-the-roles-have", "all"],
)
def test_who_may_install_may_apply_it_again_and_grant_what_roles_have(
    asked: Callable[..., Result], has: Callable[[Right], bool], lacking: str
) -> None:
    def review(body: Any) -> Reply:
        return 201, json.dumps({"status": {"allowed": has(_right(body))}}).encode()

    known = StandIn()
    known.posted[_REVIEWS] = review
    ran = asked(known, "doctor", "--pre")
    told = {line.partition("you may not ")[2].split(" ")[0] for line in ran.stdout.splitlines() if "may not" in line}
    assert told == ({lacking} if lacking else set())


def _asked(known: StandIn) -> list[Right]:
    return [_right(body) for path, body in known.sent if path == _REVIEWS]


def _right(body: Any) -> Right:
    attributes = dict(body["spec"]["resourceAttributes"])
    resource = f"{attributes.pop('resource')}/{attributes.pop('subresource')}".rstrip("/")
    return Right(resource=resource, **attributes)


def _of_applying() -> set[Right]:
    plurals = {
        (one["apiVersion"].rpartition("/")[0], f"{one['kind'].lower()}s".replace("ys", "ies"), _namespace(one))
        for one in BASE
    }
    return {Right(verb, *one) for one in plurals for verb in ("get", "create", "patch")}


def _of_granting() -> set[Right]:
    found = set()
    for one in BASE:
        if one["kind"] not in ("Role", "ClusterRole"):
            continue
        resource, namespace = f"{one['kind'].lower()}s", _namespace(one)
        found |= {Right(verb, "rbac.authorization.k8s.io", resource, namespace) for verb in ("escalate", "bind")}
        for rule in one["rules"]:
            every = product(
                rule["verbs"], rule["apiGroups"], rule["resources"], [namespace], rule.get("resourceNames", [""])
            )
            found |= {Right(*each) for each in every}
    return found


def _namespace(one: Any) -> str:
    return str(one["metadata"].get("namespace", ""))


@pytest.mark.parametrize("gates", [{}, {"DRAExtendedResource": False}])
def test_before_1_36_no_gate_is_needed_for_what_is_possible_there(gates: dict[str, bool]) -> None:
    found = {one.check: one for one in findings(installation(version=Shown("v1.32.4"), gates=gates), BEFORE)}
    (told,) = found["feature-gates"].found
    assert found["feature-gates"].status == "not-applicable"
    assert told == "allocation: dra needs Kubernetes 1.36, and this is v1.32.4; allocation: device-plugin needs none"


def test_where_the_api_server_tells_of_no_gate_it_is_not_known_which_are_enabled() -> None:
    found = {one.check: one.status for one in findings(installation(gates={}), BEFORE)}
    assert found["feature-gates"] == "unknown"


def test_a_gate_that_does_not_exist_yet_is_not_enabled() -> None:
    on = installation(**dra(), version=Shown("v1.34.1"), gates={"DRAExtendedResource": True})
    found = {one.check: one.found for one in findings(on, AFTER)}
    assert found["feature-gates"] == (
        "v1.34.1 has no feature gate DRAPartitionableDevices",
        "v1.34.1 has no feature gate DRADeviceTaints",
    )
