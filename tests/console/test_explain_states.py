"""`gpu-share explain` says of pods, and of what makes them, how they are and since when."""

import json
from typing import Any

import pytest

from console.api_server import decoded
from console.explain.workload import Workload, wants_none
from policies.node_state import ApplicationFault
from tests.console.explained import OURS, Asked, explain, known, only, owned
from tests.console.objects import ago, denial, failed_gpu, gpu, node, pending, pod, state, tenant
from tests.console.stand_in import Object, StandIn, status_of
from tests.console.test_explain_many import pods_of

JOB = "batch/v1/namespaces/team-vision/jobs/train"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/team-vision/jobs/train"
DEPLOYMENT = "apps/v1/namespaces/team-vision/deployments/resnet"
WAITS = "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."


def of_a_month(**metadata: Any) -> Object:
    one = pod("p")
    one["metadata"] |= {"creationTimestamp": ago(days=30), **metadata}
    return one


@pytest.mark.parametrize(
    ("grace_min", "finalizers", "told"),
    [
        (60, ["x/y"], "it is being deleted, and its containers have 54 min left to end"),
        (2, [], "it is being deleted, and its containers should have ended 3 min ago: look at its node"),
        (2, ["x/y"], "it is being deleted, and finalizers keep it: x/y"),
    ],
)
def test_a_pod_that_is_deleted_is_so_since_somebody_did_it_and_waits_for_something(
    asked: Asked, grace_min: int, finalizers: list[str], told: str
) -> None:
    until = ago(minutes=5.1 - grace_min)
    times = {"deletionTimestamp": until, "deletionGracePeriodSeconds": grace_min * 60}
    text = explain(asked, known(of_a_month(**times, finalizers=finalizers)), "p")
    assert text.startswith("Pod team-vision/p: Terminating on gpu-a for 5 min\n")
    assert told in text
    assert "nothing says why" not in text


@pytest.mark.parametrize(("kind", "told"), [("DisruptionTarget", " for 2 min"), ("PodScheduled", ", created 30 d ago")])
def test_an_evicted_pod_is_not_over_since_it_was_created(asked: Asked, kind: str, told: str) -> None:
    condition = {"type": kind, "status": "True", "lastTransitionTime": ago(minutes=2.1)}
    one = of_a_month()
    one["status"] = {"phase": "Failed", "reason": "Evicted", "message": "low on storage", "conditions": [condition]}
    assert explain(asked, known(one), "p").startswith(f"Pod team-vision/p: Failed on gpu-a{told}\n")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("DeletionByPodGC", "PodGC: node no longer exists"),
        ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"),
    ],
)
def test_why_a_pod_was_ended_by_kubernetes_is_told(asked: Asked, reason: str, message: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    one = of_a_month()
    one["status"] |= {"conditions": [condition]}
    assert message not in explain(asked, known(one), "p")  # it runs on: nothing came of it
    for ended in (one | {"status": one["status"] | {"phase": "Failed"}}, of_a_month(deletionTimestamp=ago(minutes=-1))):
        ended["status"] |= {"conditions": [condition]}
        text = explain(asked, known(ended), "p")
        assert f"    {reason}: {message}\n" in text
        assert "nothing says why" not in text


def renamed(strategy: str = "mps") -> StandIn:
    late = pending("late", "0.2", WAITS)
    on = known(late, state=state(gpu(resource="example.com/part")))
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][1]["data"] = {
        "_cluster.yaml": f"resourceNames: {{{strategy}: example.com/part}}\n"
    }
    return on


def test_a_pod_that_waits_for_a_resource_of_another_name_is_told_to_be_deleted(asked: Asked) -> None:
    text = explain(asked, renamed(), "late")
    told = "it was granted gpu-share.dev/vgpu, and would be granted example.com/part by now: delete the pod, so"
    assert f"    what to do: {told}" in text
    assert "wait, ask for less" not in text
    assert "wait, ask for less" in explain(asked, renamed("time-slicing"), "late")


def test_a_pod_that_waits_with_vgpus_of_an_earlier_number_is_told_to_be_deleted(asked: Asked) -> None:
    on = known(pending("late", "0.2", WAITS))
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][1]["data"] = {"_cluster.yaml": "vgpusPerGpu: 20\n"}
    text = explain(asked, on, "late")
    told = "it was granted 2 of 10 vGPUs, and a GPU is divided into 20 by now: delete the pod, so that the next one"
    assert f"    what to do: {told}" in text
    assert "wait, ask for less" not in text


def test_a_grant_that_cannot_be_read_is_not_told_as_none(asked: Asked) -> None:
    one = pod("resnet-0")
    one["metadata"]["annotations"]["gpu-share.dev/grant"] = "{"
    text = explain(asked, known(one), "resnet-0")
    assert "    its grant cannot be read: gpu-share.dev/grant was written by hand, or by another version\n" in text
    del one["metadata"]["annotations"]["gpu-share.dev/grant"]
    assert "    no grant: gpu-share gave it nothing when it was created\n" in explain(asked, known(one), "resnet-0")


@pytest.mark.parametrize(("minutes", "is_told"), [(4, True), (10, False)])
def test_a_fault_before_a_pod_was_created_has_not_hit_it(asked: Asked, minutes: int, *, is_told: bool) -> None:
    fault = ApplicationFault(xid=31, at=ago(minutes=minutes), tenants=("team-vision/resnet-0/main",))
    on = known(pod("resnet-0"), state=state(gpu(tenant("resnet-0", 2), application_fault=fault)))
    assert ("XID 31" in explain(asked, on, "resnet-0")) is is_told


@pytest.mark.parametrize(
    ("tenants", "granted", "told"),
    [
        ((), 2, "with nobody else"),
        ((), 10, "with 0.8 that is of no named container"),
        ((tenant("b", 3),), 10, "with team-vision/b/main (0.3), and 0.5 that is of no named container"),
    ],
)
def test_what_is_granted_to_nobody_who_is_named_is_told(
    asked: Asked, tenants: tuple[Any, ...], granted: int, told: str
) -> None:
    on = known(pod("resnet-0"), state=state(gpu(tenant("resnet-0", 2), *tenants, granted=granted)))
    assert f"      {told}\n" in explain(asked, on, "resnet-0")


def test_where_the_kubelet_found_no_healthy_device_the_unhealthy_gpus_are_named(asked: Asked) -> None:
    why = "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices x"
    one = pod("p", phase="Failed", reason="UnexpectedAdmissionError", message=why)
    said = "gpu-a: GPU 0 is unhealthy: the driver reported XID 79"
    assert f"    {said}\n" in explain(asked, known(one, state=state(failed_gpu(index=0))), "p")
    assert said not in explain(asked, known(one, state=state(gpu())), "p")


@pytest.mark.parametrize(
    ("toleration", "told"),
    [
        ({"key": "gpu", "operator": "Exists"}, ""),
        ({"operator": "Exists"}, ""),
        ({"key": "gpu", "value": "h200"}, ""),
        ({"key": "gpu", "value": "a100"}, "the pod does not tolerate its taint gpu=h200:NoSchedule"),
        (
            {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
            "does not tolerate its taint gpu=h200:NoSchedule",
        ),
        ({"key": "other", "operator": "Exists"}, "the pod does not tolerate its taint gpu;"),
    ],
)
def test_a_toleration_is_of_a_value_and_an_effect_as_well(asked: Asked, toleration: Object, told: str) -> None:
    late = pending("late", "0.4", WAITS)
    late["spec"]["tolerations"] = [toleration]
    on = known(late, state=state(gpu(tenant("a", 9))))
    tainted = {"taints": [{"key": "gpu", "value": "h200", "effect": "NoSchedule"}]}
    on.lists["/api/v1/nodes"] = [{**node(), "spec": tainted}]
    text = explain(asked, on, "late")
    assert told in text if told else "does not tolerate" not in text, text


def condition(kind: str, status: str, reason: str) -> Object:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": "as told"}]}


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (JOB, condition("Failed", "True", "BackoffLimitExceeded"), "Failed: BackoffLimitExceeded: as told"),
        (JOB, condition("Complete", "True", "CompletionsReached"), "Complete: CompletionsReached: as told"),
    ],
)
def test_what_is_over_was_created(asked: Asked, path: str, status: Object, told: str) -> None:
    on = known()
    only(on, path, status=status)
    assert explain(asked, on, "job/train") == f"Job team-vision/train: no pods\n  State\n    {told}\n"


def test_a_deployment_that_is_slow_has_its_pods_created(asked: Asked) -> None:
    on = known(owned(pod("resnet-0"), "ReplicaSet", "resnet-5d"))
    only(on, DEPLOYMENT, status=condition("Progressing", "False", "ProgressDeadlineExceeded"))
    text = explain(asked, on, "deploy/resnet")
    assert "  State\n    Progressing: ProgressDeadlineExceeded: as told\n" in text
    assert "Not created" not in text


def test_the_pods_of_another_object_are_not_those_of_one_whose_name_it_begins_with(asked: Asked) -> None:
    owners = (("Job", "train-29461234"), ("Job", "train-model"), ("Job", "train-2"), ("ReplicaSet", "train-model"))
    on = known(*(owned(pod(f"p-{n}"), *one) for n, one in enumerate(owners)))
    only(on, "batch/v1/namespaces/team-vision/cronjobs/train")
    assert [one.partition(":")[0] for one in pods_of(explain(asked, on, "cj/train"))] == ["p-0"]
    only(on, "apps/v1/namespaces/team-vision/deployments/train")
    assert pods_of(explain(asked, on, "deploy/train")) == []


def volcano(*pods: Object) -> StandIn:
    on = known(*pods)
    only(on)
    told = denial("too much", kind="Job", name="train")
    told["involvedObject"]["apiVersion"] = "batch.volcano.sh/v1alpha1"
    on.lists[f"{OURS}/events"] = [told]
    on.raw[VOLCANO] = (200, json.dumps({"metadata": {"name": "train"}, "spec": {"tasks": []}}).encode())
    return on


@pytest.mark.parametrize("name", ["job/train", "train"])
def test_a_job_of_volcano_is_a_job_too(asked: Asked, name: str) -> None:
    text = explain(asked, volcano(), name)
    assert text.startswith("Job team-vision/train: no pods\n  Not created\n    Job train, 9 times: too much\n")


@pytest.mark.parametrize(
    ("phase", "wants_pods"),
    [
        ("Pending", True),
        ("Running", True),
        ("Restarting", True),
        *((one, False) for one in ("Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated")),
        ("Failed", False),
    ],
)
def test_a_job_of_volcano_that_ends_is_not_called_denied(asked: Asked, phase: str, *, wants_pods: bool) -> None:
    on = volcano()
    job = {"metadata": {"name": "train"}, "spec": {"tasks": []}, "status": {"state": {"phase": phase}}}
    on.raw[VOLCANO] = (200, json.dumps(job).encode())
    text = explain(asked, on, "job/train")
    assert ("too much" in text, f"  State\n    {phase}\n" in text) == (wants_pods, not wants_pods)


def test_a_job_of_volcano_that_may_not_be_read_is_one_where_its_pods_or_events_show_it(asked: Asked) -> None:
    on = volcano(owned(pod("train-0"), "Job", "train"))
    on.raw[VOLCANO] = status_of(403, "jobs.batch.volcano.sh is forbidden")
    text = explain(asked, on, "job/train")
    assert pods_of(text) == ["train-0: Running on gpu-a for 5 min"]
    assert "the right to get jobs.batch.volcano.sh in namespace team-vision is missing" in text
    on.lists[f"{OURS}/pods"], on.lists[f"{OURS}/events"] = [], []
    assert "there is no Job team-vision/train" in asked(on, "explain", "-n", "team-vision", "job/train").stderr


@pytest.mark.parametrize(("spec", "is_wanted"), [({"suspend": True}, False), ({}, True)])
def test_the_state_of_a_ray_cluster_is_a_word_and_is_read(spec: Object, *, is_wanted: bool) -> None:
    said = json.dumps({"metadata": {"name": "a"}, "spec": spec, "status": {"state": "ready"}}).encode()
    assert wants_none(decoded(Workload, said)) is not is_wanted
