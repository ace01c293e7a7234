"""Whether `gpu-share doctor` leaves pods alone that only start, and tells of those that something keeps from it."""

import pytest

from console.doctor.report import AFTER, findings
from tests.console.installations import installation, pods, seen, waiting
from tests.console.objects import ago, pod


def judged(*reasons: str, minutes: float, scheduled: float | None = None) -> str:
    """Judge a Pending pod so many *minutes* old, *scheduled* so many ago, whose containers wait for *reasons*."""
    held = [one for reason in reasons for one in waiting(reason)]
    conditions = []
    if scheduled is not None:
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(minutes=scheduled)}]
    made = pod("p", phase="Pending", containerStatuses=held, conditions=conditions)
    made["metadata"]["creationTimestamp"] = ago(minutes=minutes)
    (found,) = (one for one in findings(installation(seen(**pods(made))), AFTER) if one.check == "pods-run")
    return found.status


@pytest.mark.parametrize("reasons", [(), ("ContainerCreating",), ("PodInitializing",)])
def test_a_pod_that_starts_is_no_matter_until_ten_minutes_have_passed(reasons: tuple[str, ...]) -> None:
    assert judged(*reasons, minutes=0.05) == "ok"
    assert judged(*reasons, minutes=9) == "ok"
    assert judged(*reasons, minutes=11) == "warning"


@pytest.mark.parametrize("reason", ["ErrImagePull", "CreateContainerConfigError", "CrashLoopBackOff"])
def test_a_pod_that_something_keeps_from_starting_is_told_at_once(reason: str) -> None:
    assert judged(reason, minutes=0.05) == "warning"
    assert judged("ContainerCreating", reason, minutes=0.05) == "warning"


def test_a_pod_that_waited_long_for_room_starts_when_it_has_a_node() -> None:
    assert judged("ContainerCreating", minutes=600, scheduled=2) == "ok"
    assert judged("ContainerCreating", minutes=600, scheduled=11) == "warning"
