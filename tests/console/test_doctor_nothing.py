"""Where there is nothing to judge, a check says so, and not that all is in order."""

from typing import Any

import pytest

from console.doctor.admission import WebhookConfiguration
from console.doctor.report import AFTER, findings
from tests.console.installations import dra, installation, nodes, policies, seen, with_node
from tests.console.objects import gpu, state
from tests.console.wrong.of_second_places import mps_with

_OF_GPUS = {"gpus-healthy", "registered", "within-share", "with-share"}
_OF_NODES = {"nodes-ready", "nodes-speak", "gpus-shared", "tenants-known", *_OF_GPUS}
_OF_ADMISSION = {"admission-asked", "admission-shipped"}
_OF_POLICIES = {"exempt-namespaces-exist", "pipe-directory"}
_OF_PARTS = {"images", "policies-same", "parts-run", "parts-same"}
_NO_POLICIES: dict[str, Any] = {"admission_policies": {}, "bindings": ()}
_NO_ADMISSION: dict[str, Any] = {"webhook": None, "has_webhook": False, **_NO_POLICIES}


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (installation(seen(nodes=())), _OF_NODES),
        (installation(seen(nodes=(), parts=())), _OF_NODES | _OF_PARTS),
        (installation(**_NO_ADMISSION), _OF_ADMISSION | _OF_POLICIES),
        (installation(**{**_NO_ADMISSION, "webhook": WebhookConfiguration()}), _OF_ADMISSION | _OF_POLICIES),
        (installation(**_NO_POLICIES), _OF_POLICIES),
        (installation(mps_with().seen, **_NO_POLICIES), {"exempt-namespaces-exist"}),
        (with_node(), _OF_GPUS),
        (installation(seen(**nodes(state(gpu(allocation="dra"), on="gpu-0"))), **dra()), {"registered"}),
    ],
)
def test_a_check_with_nothing_to_judge_is_not_in_order(made: Any, names: set[str]) -> None:
    all_is_there = {one.check: one.status for one in findings(installation(), AFTER)}
    found = {one.check: one.status for one in findings(made, AFTER)}
    assert {all_is_there[name] for name in names} == {"ok"}
    of_these = {*_OF_NODES, *_OF_ADMISSION, *_OF_POLICIES, *_OF_PARTS}
    assert {name for name in of_these if found[name] == "not-applicable"} == names


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize("allocation", ["device-plugin", "dra"])
@pytest.mark.parametrize("handover", ["cdi", "envvar", "devices", "cdi, envvar"])
def test_without_a_node_nothing_of_nodes_is_in_order(strategy: str, allocation: str, handover: str) -> None:
    made = {**dra(), **policies(f"handover: [{handover}]\n", x=f"strategy: {strategy}\nallocation: {allocation}\n")}
    found = findings(installation(seen(nodes=()), **{**made, "toolkits": {}}), AFTER)
    of_nodes = [one for one in found if one.section == "Drivers and runtimes" or one.check in _OF_NODES]
    assert {one.status for one in of_nodes} == {"not-applicable"}
