"""Where there is nothing to judge, a check says so, and not that all is in order."""

from typing import Any

import pytest

from console.doctor.admission import WebhookConfiguration
from console.doctor.report import AFTER, findings
from tests.console.installations import dra, installation, nodes, seen, with_node
from tests.console.objects import gpu, state
from tests.console.wrong.of_second_places import mps_with

_OF_NODES = {"nodes-ready", "nodes-speak", "gpus-healthy", "registered", "gpus-shared", "tenants-known"}
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
        (with_node(), {"gpus-healthy", "registered"}),
        (installation(seen(**nodes(state(gpu(allocation="dra"), on="gpu-0"))), **dra()), {"registered"}),
    ],
)
def test_a_check_with_nothing_to_judge_is_not_in_order(made: Any, names: set[str]) -> None:
    all_is_there = {one.check: one.status for one in findings(installation(), AFTER)}
    found = {one.check: one.status for one in findings(made, AFTER)}
    assert {all_is_there[name] for name in names} == {"ok"}
    of_these = {*_OF_NODES, *_OF_ADMISSION, *_OF_POLICIES, *_OF_PARTS}
    assert {name for name in of_these if found[name] == "not-applicable"} == names
