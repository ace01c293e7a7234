"""What `gpu-share doctor --pre` looks at before an installation."""

from collections.abc import Callable

import pytest
from click.testing import Result

from console.doctor.report import AFTER, BEFORE, findings
from console.words import Shown
from tests.console.installations import (
    dra,
    installation,
    seen,
)
from tests.console.stand_in import StandIn
from tests.manifests.admission import BASE

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def test_before_an_installation_a_disabled_gate_is_told_and_no_failure() -> None:
    found = {one.check: one for one in findings(installation(gates={"DRAExtendedResource": False}), BEFORE)}
    assert (found["feature-gates"].status, found["feature-gates"].found) == (
        "warning",
        ("the feature gate DRAExtendedResource is disabled",),
    )


def test_before_an_installation_no_node_needs_a_label() -> None:
    found = {one.check: one.status for one in findings(installation(seen(nodes=())), BEFORE)}
    assert (found["nodes-labelled"], found["other-plugins"]) == ("not-applicable", "not-applicable")


def test_before_an_installation_the_rights_to_install_are_looked_at() -> None:
    found = findings(installation(rights={"namespaces": True, "daemonsets": False}), BEFORE)
    assert [(one.check, one.found) for one in found if one.status == "failure"] == [
        ("rights", ("you may not create daemonsets",))
    ]


def test_before_an_installation_each_kind_of_object_is_asked_for_that_it_creates(asked: Callable[..., Result]) -> None:
    known = StandIn()
    known.posted[_REVIEWS] = (201, b'{"status": {"allowed": true}}')
    asked(known, "doctor", "--pre")
    attributes = [body["spec"]["resourceAttributes"] for path, body in known.sent if path == _REVIEWS]
    plurals = {(one["apiVersion"], f"{one['kind'].lower()}s".replace("ys", "ies")) for one in BASE}
    created = {(version.rpartition("/")[0].partition("/")[0], plural) for version, plural in plurals}
    assert {(one["group"], one["resource"]) for one in attributes} == created


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
