"""Whether `gpu-share doctor` says which priorities evict pods in vain, and says it of no others."""

import pytest

from console.doctor.report import AFTER, findings
from tests.console.wrong.of_workloads import prioritised


@pytest.mark.parametrize(
    ("policy", "priority", "gpus", "status"),
    [
        ("PreemptLowerPriority", 10, 2, "warning"),
        ("Never", 10, 2, "ok"),
        ("PreemptLowerPriority", 0, 2, "ok"),
        ("PreemptLowerPriority", 10, 1, "ok"),  # what is freed is on one GPU
    ],
)
def test_a_pod_with_a_share_that_evicts_others_is_named(policy: str, priority: int, gpus: int, status: str) -> None:
    on = prioritised(policy, priority=priority, gpus=gpus)
    (found,) = (one for one in findings(on, AFTER) if one.check == "evictions-help")
    assert found.status == status
