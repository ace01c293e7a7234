"""Pods of which no scheduler has said anything: `explain` and `doctor` name the scheduler that they ask for."""

import pytest

from console.doctor.report import AFTER, findings
from tests.console.explained import Asked, explain, known
from tests.console.installations import installation, pods, seen
from tests.console.objects import ago, pending, pod
from tests.console.stand_in import Object


def silent(**spec: str) -> Object:
    made = pod("late", on="", phase="Pending")
    made["metadata"]["creationTimestamp"] = ago(hours=3)
    made["spec"] |= spec
    return made


@pytest.mark.parametrize(
    ("spec", "name"), [({"schedulerName": "volcano"}, "volcano"), ({}, "default-scheduler")], ids=["named", "default"]
)
def test_a_pod_that_no_scheduler_has_looked_at_is_told_which_one_it_waits_for(
    asked: Asked, spec: dict[str, str], name: str
) -> None:
    told = f"no scheduler has said anything of it: see that one runs whose name is {name}, its schedulerName"
    text = explain(asked, known(silent(**spec)), "late")
    assert f"\n  State\n    Pending, and {told}\n" in text
    assert "    gpu-a: nothing seen of its GPUs keeps the pod off\n" in text
    assert "words are above" not in text
    on = installation(seen(**pods(silent(**spec))))
    (found,) = (one for one in findings(on, AFTER) if one.check == "pods-run")
    assert found.found == (f"team-vision/late is Pending: {told}",)


@pytest.mark.parametrize(
    "one", [pending("late", "0.2", "no room"), pod("late", phase="Pending")], ids=["judged", "has a node"]
)
def test_a_pod_that_a_scheduler_has_looked_at_is_not_told_to_wait_for_one(asked: Asked, one: Object) -> None:
    assert "no scheduler" not in explain(asked, known(one), "late")
