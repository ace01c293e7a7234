"""`gpu-share explain` says what to do about what is said by whoever can know, and about what still holds."""

from typing import Any

import pytest

from policies.node_state import Use
from tests.console.explained import OURS, Asked, explain, known, only
from tests.console.objects import GIB, ago, denial, gpu, pending, pod, state, tenant
from tests.console.stand_in import Object
from tests.console.test_explain_many import crowd, made, pods_of

DEPLOYMENT = "apps/v1/namespaces/team-vision/deployments/resnet"
NO_PIPES = 'MountVolume.SetUp failed for volume "nvidia-mps" : hostPath type check failed'
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
RUN_AS = 'runAsNonRoot != true (container "main" must set securityContext.runAsNonRoot=true)'


def event(of: Object, reason: str, message: str, *, minutes: int = 1, kind: str = "Warning") -> Object:
    uid = of["metadata"]["uid"]
    return {
        "metadata": {"name": "e", "namespace": "team-vision"},
        "involvedObject": {"kind": "Pod", "namespace": "team-vision", "name": of["metadata"]["name"], "uid": uid},
        "type": kind,
        "reason": reason,
        "message": message,
        "lastTimestamp": ago(minutes=minutes),
    }


def waiting(name: str, reason: str = "ContainerCreating") -> Object:
    return pod(name, phase="Pending", containerStatuses=[{"name": "main", "state": {"waiting": {"reason": reason}}}])


def ended(message: str, reason: str = "Error") -> dict[str, Any]:
    end = {"terminated": {"exitCode": 1, "reason": reason, "message": message}}
    held = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    return {"containerStatuses": [{"name": "main", "state": held, "lastState": end}]}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f'violates PodSecurity "restricted:latest": {RUN_AS}', ""),
        ('violates PodSecurity "baseline:latest": host namespaces (hostIPC=true)', "the policy must say mps"),
        (f'violates PodSecurity "restricted:latest": {RUN_AS}, volumes "nvidia-mps"', "the policy must say mps"),
        ("unable to validate against any security context constraint: runAsUser: must be in the ranges", ""),
        (
            "unable to validate against any security context constraint: Host IPC is not allowed",
            "the policy must say mps",
        ),
        (
            "ValidatingAdmissionPolicy 'gpu-share-lockdown' with binding 'gpu-share-lockdown' denied request",
            "ask for a",
        ),
        ('failed calling webhook "namespace.sidecar-injector.istio.io": no endpoints available', ""),
        ('failed calling webhook "pods.gpu-share.dev": context deadline exceeded', "the webhook does not answer"),
        ('failed calling webhook "restricted-pods.gpu-share.dev": refused', "the webhook does not answer"),
        ('admission webhook "budget.example.com" denied the request: Insufficient budget of team', ""),
    ],
)
def test_of_a_denial_the_remedy_is_told_that_helps_against_it(asked: Asked, said: str, told: str) -> None:
    on = known()
    only(on, DEPLOYMENT, spec={"replicas": 1})
    on.lists[f"{OURS}/events"] = [denial(said)]
    text = explain(asked, on, "deploy/resnet")
    assert f"    what to do: {told}" in text if told else "what to do" not in text, text


@pytest.mark.parametrize(
    "said", ["redis is unhealthy", "Insufficient permissions", "exceeded quota of bucket", "hostPath type check failed"]
)
def test_no_remedy_is_told_for_what_a_program_says_of_something_else(asked: Asked, said: str) -> None:
    assert "what to do" not in explain(asked, known(pod("p", **ended(said))), "p")


def test_what_the_runtime_says_of_a_container_that_never_ran_has_its_remedy(asked: Asked) -> None:
    said = "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=GPU-0"
    told = "what to do: NVIDIA's specification has gone or changed"
    assert told in explain(asked, known(pod("p", **ended(said, "StartError"))), "p")
    assert told not in explain(asked, known(pod("p", **ended(said))), "p")


@pytest.mark.parametrize(
    ("others_gib", "told"),
    [
        (
            125,
            "others on the GPU leave it less than its share: team-vision/hog/main takes 125.0 GiB",
        ),
        (110, "others on the GPU leave it less than its share: team-vision/hog/main takes 110.0 GiB"),
        (20, "the memory of its share is used up"),
    ],
)
def test_out_of_memory_is_told_by_who_has_the_memory(asked: Asked, others_gib: int, told: str) -> None:
    hog = tenant("hog", 2, use=Use(memory_bytes=others_gib * GIB))
    shared = state(gpu(tenant("resnet-0", 2), hog, strategy="time-slicing", limits_enforced_by="", mps_daemon=None))
    text = explain(asked, known(pod("resnet-0", **ended(OOM)), state=shared), "resnet-0")
    assert f"    what to do: {told}" in text
    assert text.count("what to do") == 1


@pytest.mark.parametrize(
    ("reason", "later", "holds"),
    [
        ("ContainerCreating", None, True),
        ("ImagePullBackOff", None, False),
        ("ContainerCreating", ("Pulling", 2), False),
        ("ContainerCreating", ("Scheduled", 60), True),
    ],
)
def test_what_is_over_has_no_remedy(
    asked: Asked,
    reason: str,
    later: tuple[str, int] | None,
    holds: bool,  # noqa: FBT001 - of a table
) -> None:
    one = waiting("p", reason)
    on = known(one)
    on.lists[f"{OURS}/events"] = [event(one, "FailedMount", NO_PIPES, minutes=50)]
    if later:
        on.lists[f"{OURS}/events"].append(event(one, later[0], "done", minutes=later[1], kind="Normal"))
    text = explain(asked, on, "p")
    assert ("the node has no directory of MPS pipes" in text) is holds
    assert f"    FailedMount: {NO_PIPES}" in text


def test_of_many_pods_that_do_not_start_those_that_lack_something_else_are_explained_apart(asked: Asked) -> None:
    pods = [made(waiting(f"a-{n:02}")) for n in range(30)]
    on = crowd(*pods)
    missing = event(pods[0], "FailedMount", 'MountVolume.SetUp failed for volume "data" : secret "x" not found')
    on.lists[f"{OURS}/events"] = [missing, *(event(one, "FailedMount", NO_PIPES) for one in pods[1:])]
    assert pods_of(explain(asked, on, "deploy/resnet")) == [
        "a-00: Pending on gpu-a for 5 min",
        "a-01: Pending on gpu-a for 5 min, and 28 more like it",
    ]
    assert on.asked.count(f"{OURS}/events") == 2 + 4 + 1, "once for all that are like others"


def test_of_few_pods_the_events_of_others_are_not_asked_for(asked: Asked) -> None:
    pods = [made(waiting(f"a-{n:02}")) for n in range(20)]
    on = crowd(*pods)
    assert len(pods_of(explain(asked, on, "deploy/resnet"))) == 20
    assert on.asked.count(f"{OURS}/events") == 20 + 4


def test_of_a_whole_gpu_no_larger_share_is_advised(asked: Asked) -> None:
    on = known(pod("resnet-0", "1", **ended(OOM)), state=state(gpu(tenant("resnet-0", 10))))
    text = explain(asked, on, "resnet-0")
    assert "    what to do: the memory of the GPU is used up: set the framework's memory lower" in text
    assert "larger share" not in text


def test_what_a_pod_that_succeeded_was_once_out_of_is_no_matter_any_more(asked: Asked) -> None:
    assert "what to do" not in explain(asked, known(pod("p", phase="Succeeded", **ended(OOM))), "p")


_DEVICES = "Pod was rejected: Allocate failed due to "


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"{_DEVICES}requested number of devices unavailable for gpu-share.dev/vgpu. Requested: 5, Available: 4", True),
        (f"{_DEVICES}requested number of devices unavailable for rdma/shared_a. Requested: 1, Available: 0", False),
        (f"{_DEVICES}no healthy devices present; cannot allocate unhealthy devices gpu-share.dev/vgpu", True),
        (f"{_DEVICES}no healthy devices present; cannot allocate unhealthy devices rdma/shared_a", False),
    ],
)
def test_devices_of_others_have_remedies_of_others(asked: Asked, said: str, *, told: bool) -> None:
    on = known(pod("p", phase="Failed", reason="UnexpectedAdmissionError", message=said))
    text = explain(asked, on, "p")
    assert ("vGPUs" in text.partition("  State\n")[2]) is told
    assert ("unhealthy: the driver" in text.partition("  State\n")[2]) is (told and "no healthy" in said)


@pytest.mark.parametrize(
    "said",
    [
        'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /data is not a directory',
        "unresolvable CDI devices smarter-devices/x=1",
    ],
)
def test_volumes_and_devices_of_others_have_no_remedy_of_ours(asked: Asked, said: str) -> None:
    one = waiting("p")
    on = known(one)
    on.lists[f"{OURS}/events"] = [event(one, "FailedMount", said)]
    assert "what to do" not in explain(asked, on, "p")


def test_of_a_claim_that_the_lockdown_denied_the_event_of_its_pod_has_the_remedy(asked: Asked) -> None:
    one = pending("late", "0.2", "0/1 nodes are available.")
    on = known(one)
    policy = "ValidatingAdmissionPolicy 'gpu-share-lockdown-claims' with binding 'gpu-share-lockdown-claims'"
    said = f"PodResourceClaim gpu: failed to create ResourceClaim: forbidden: {policy} denied request: All GPUs"
    on.lists[f"{OURS}/events"] = [event(one, "FailedResourceClaimCreation", said)]
    assert "    what to do: ask for a share as the message says" in explain(asked, on, "late")
