"""`gpu-share explain` against a stand-in for an API server."""

from typing import Any

import pytest

from policies.node_state import ApplicationFault
from tests.console.explained import OURS, Asked, explain, known, only
from tests.console.objects import ago, gpu, node, pending, pod, state, tenant
from tests.policies.pods import limited, mutated
from tests.policies.pods import pod as shared_pod


def test_a_pod_that_runs_is_explained_from_its_request_to_its_neighbours(asked: Asked) -> None:
    text = explain(asked, known(pod("resnet-0")), "resnet-0")
    for line in (
        "Pod team-vision/resnet-0: Running on gpu-a for 5 min",
        "    annotation gpu-share: 0.2",
        "    by the policy team-vision: strategy mps, attached in the pod, gpu-share.dev/vgpu",
        '    container "main": 0.2 of a GPU, 2 of 10 vGPUs',
        "    Policy: team-vision.yaml.",
        '    Container "main" asks for 0.2 of a GPU by gpu-share; 0.001 (built-in default) to 0.5 (team-vision.yaml:2)',
        "      0.2 x 10 vGPUs per GPU = 2: 2 x gpu-share.dev/vgpu.",
        '    container "main": 0.2 of NVIDIA H200 GPU-0 (GPU 0 of gpu-a)',
        "      memory limit 28.0 GiB, threads -, enforced by mps",
        "      takes now: memory 3.0 GiB, SM 25%, processes 1",
        "      with team-language/bert-0/main (0.5)",
    ):
        assert line in text, text
    assert "Not seen" not in text


def test_a_pod_that_waits_is_told_of_each_node_why(asked: Asked) -> None:
    on = known(pending("late", "0.4", "0/3 nodes are available: 1 Insufficient gpu-share.dev/vgpu."))
    on.lists["/api/v1/nodes"] += [node("gpu-new"), node("gpu-off")]
    on.lists["/api/v1/nodes"][2]["spec"] = {"unschedulable": True, "taints": [{"key": "x/y", "effect": "NoSchedule"}]}
    on.lists[f"{OURS}/pods"][0]["spec"]["nodeSelector"] = {"disk": "fast"}
    text = explain(asked, on, "late")
    for line in (
        "    0/3 nodes are available: 1 Insufficient gpu-share.dev/vgpu.",
        "    what to do: wait, ask for less, or add a node (docs/troubleshooting.md#a-pod-is-pending)",
        "    gpu-a: it lacks the label disk=fast; no GPU has 0.4 free: GPU 0 has 0.2, 0.1 hidden, GPU 1 is unhealthy",
        "    gpu-new: it lacks the label disk=fast; it has no GPU to share: no part of gpu-share runs there",
        "gpu-off: it is cordoned; it lacks the label disk=fast; the pod does not tolerate its taint x/y; it has no GPU",
    ):
        assert line in text, text


def test_a_node_with_room_is_not_blamed_and_nothing_else_is_said_of_it(asked: Asked) -> None:
    text = explain(asked, known(pending("late", "0.2", "no")), "late")
    assert "    gpu-a: nothing seen of its GPUs keeps the pod off: the scheduler's own words are above, or in" in text


def test_a_pod_that_failed_is_told_what_happened_and_what_to_do(asked: Asked) -> None:
    failed = pod(
        "p", phase="Failed", reason="UnexpectedAdmissionError", message="4 vGPUs must lie on one GPU, got 3 and 1"
    )
    text = explain(asked, known(failed), "p")
    assert "    UnexpectedAdmissionError: 4 vGPUs must lie on one GPU, got 3 and 1" in text
    assert "what to do: no one GPU had that many vGPUs free" in text
    assert "docs/troubleshooting.md#fragmentation" in text


def test_policies_that_would_deny_a_pod_by_now_are_told(asked: Asked) -> None:
    text = explain(asked, known(pod("big", "0.8")), "big")
    assert "    They would deny the pod, were it created now:" in text
    assert "The pod is denied with ShareAboveMaximum" in text
    assert "(team-vision.yaml:2)" in text


def admitted(name: str, one: dict[str, Any]) -> dict[str, Any]:
    """A pod that runs since the webhook admitted it by the built-in policy."""
    runs = pod(name)
    one["metadata"] = {**runs["metadata"], "annotations": one["metadata"]["annotations"]}
    made = mutated(one)
    made["spec"]["nodeName"] = "gpu-a"
    return {**made, "status": runs["status"]}


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("team-vision", "strategy: time-slicing"),
        ("team-vision", "allocation: dra"),
        ("team-vision", "mps: {attach: node}"),
        ("team-vision", "placement: {schedulerName: volcano}"),
        ("_cluster", "vgpusPerGpu: 20"),
        ("_cluster", "resourceNames: {mps: example.com/vgpu}"),
    ],
)
def test_what_the_webhook_wrote_into_a_pod_is_not_held_against_it(asked: Asked, file: str, change: str) -> None:
    on = known(admitted("resnet-0", shared_pod("0.25")))
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"] = {"_default.yaml": "", f"{file}.yaml": change}
    text = explain(asked, on, "resnet-0")
    assert "would deny" not in text
    assert 'Container "main" asks for 0.25 of a GPU by gpu-share' in text
    assert "    annotation gpu-share: 0.25" in text
    assert "limit of main" not in text


def test_a_limit_that_its_owner_wrote_is_held_against_a_pod(asked: Asked) -> None:
    on = known(admitted("resnet-0", shared_pod(None, limited())))
    files = {"_default.yaml": "", "team-vision.yaml": "strategy: time-slicing"}
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"] = files
    text = explain(asked, on, "resnet-0")
    assert "    limit of main: 2 x gpu-share.dev/vgpu" in text
    assert "They would deny the pod, were it created now:" in text
    assert "this namespace's strategy allocates gpu-share.dev/vgpu-timesliced" in text
    assert "hostIPC" not in text


def test_a_fault_that_may_have_hit_a_container_is_told(asked: Asked) -> None:
    fault = ApplicationFault(xid=31, at=ago(minutes=4), tenants=("team-vision/resnet-0/main",))
    on = known(pod("resnet-0"), state=state(gpu(tenant("resnet-0", 2), application_fault=fault)))
    text = explain(asked, on, "resnet-0")
    assert "a program on this GPU had a fault, XID 31" in text
    assert "what it takes now is not known" in text


@pytest.mark.parametrize("name", ["none", "pod/none", "deployment/none", "secret/x", "\x1b[2J"])
def test_what_is_not_there_is_one_sentence(asked: Asked, name: str) -> None:
    on = known()
    only(on)
    ran = asked(on, "explain", "-n", "team-vision", name)
    assert ran.exit_code == 1
    assert ran.stderr.startswith("gpu-share explain: ")
    assert len(ran.stderr.splitlines()) == 1
    assert "\x1b" not in ran.stderr


@pytest.mark.parametrize("name", ["", "deploy/", "/a", "secret/x"])
def test_a_name_that_names_nothing_is_told_so_and_nobody_is_asked(asked: Asked, name: str) -> None:
    on = known()
    ran = asked(on, "explain", "-n", "team-vision", name)
    assert ran.exit_code == 1
    assert ran.stderr.startswith(f"gpu-share explain: '{name}': expected a pod, or one of deployment, ")
    assert on.asked == []


def test_policies_that_may_not_be_read_leave_the_rest(asked: Asked) -> None:
    on = known(pod("resnet-0"))
    on.forbidden = {"configmaps"}
    text = explain(asked, on, "resnet-0")
    assert 'container "main": 0.2 of NVIDIA H200' in text
    assert "the right to list configmaps in namespace gpu-share, and get namespaces is missing" in text


def test_of_a_broken_policy_its_line_is_told_and_nothing_is_decided_by_it(asked: Asked) -> None:
    on = known(pod("resnet-0"))
    files = {"_default.yaml": "", "team-vision.yaml": "share:\n  maximum: 7.5\n"}
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"] = files
    text = explain(asked, on, "resnet-0")
    assert "would deny" not in text
    place = "ConfigMap gpu-share/gpu-share-policies/team-vision.yaml:2"
    told = f"the policy of the namespace: {place}: share.maximum: expected a share in quotes, got 7.5"
    assert told in text
    assert text.endswith(": a webhook keeps the policy that it had, and one that has started since denies\n")


def test_no_word_of_a_pod_writes_on_the_terminal(asked: Asked) -> None:
    odd = pod("resnet-0", phase="Failed", message="\x1b[2J")
    odd["metadata"]["annotations"]["gpu-share.dev/framework"] = "\x1b]0;x\x07"
    odd["spec"]["containers"][0]["args"] = ["\x1b[31m"]
    text = explain(asked, known(odd), "resnet-0")
    assert "gpu-share.dev/framework" in text
    assert not set(text) & set("\x1b\x07")


def test_what_of_its_gpu_no_named_container_holds_is_not_nobody(asked: Asked) -> None:
    beside = gpu(tenant("resnet-0", 2), granted=10, free=0, largest_free=0)
    assert "      with 0.8 that is of no named container" in explain(
        asked, known(pod("resnet-0"), state=state(beside)), "resnet-0"
    )
    full = gpu(tenant("resnet-0", 2), tenant("b", 5), granted=8, free=2, largest_free=2)
    told = explain(asked, known(pod("resnet-0"), state=state(full)), "resnet-0")
    assert "      with team-vision/b/main (0.5), and 0.1 that is of no named container" in told
    alone = explain(asked, known(pod("resnet-0"), state=state(gpu(tenant("resnet-0", 2)))), "resnet-0")
    assert "      with nobody else\n" in alone
