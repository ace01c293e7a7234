"""Whether `gpu-share doctor` says which priorities evict pods in vain, and says it of no others."""

import json

import pytest

from console.doctor.report import AFTER, findings
from tests.console.installations import installation, nodes, pods, seen
from tests.console.objects import gpu, pod, state
from tests.console.wrong.of_workloads import prioritised

CHECK = "evictions-help"


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
    (found,) = (one for one in findings(on, AFTER) if one.check == CHECK)
    assert found.status == status


@pytest.mark.parametrize(
    ("strategy", "vgpus", "status"), [("mps", 6, "warning"), ("mps", 1, "ok"), ("whole", 1, "ok"), ("whole", 2, "ok")]
)
def test_what_fits_wherever_something_is_freed_evicts_nobody_in_vain(strategy: str, vgpus: int, status: str) -> None:
    urgent = {"priority": 10, "priorityClassName": "urgent", "preemptionPolicy": "PreemptLowerPriority"}
    pods_of_both = [pod("first"), pod("late")]
    pods_of_both[0]["spec"] |= urgent
    for one in pods_of_both:
        annotations = one["metadata"]["annotations"]
        grant = json.loads(annotations["gpu-share.dev/grant"])
        grant |= {"strategy": strategy, "containers": {"main": {"vgpus": vgpus, "share": "0.1", "of": 10}}}
        annotations["gpu-share.dev/grant"] = json.dumps(grant)
    node = nodes(state(gpu(), gpu(index=1), on="gpu-0"))
    (found,) = (one for one in findings(installation(seen(**node, **pods(*pods_of_both))), AFTER) if one.check == CHECK)
    assert found.status == status
