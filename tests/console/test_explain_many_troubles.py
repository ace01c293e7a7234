"""`gpu-share explain` of very many pods: those whose trouble is another one than that of the others are not hidden."""

from typing import Any

import msgspec
import pytest

from policies.node_state import ApplicationFault, NodeState
from tests.console.explained import Asked, explain, known, only, owned
from tests.console.objects import ago, closed, cluster, failed_gpu, gpu, node, part, pending, pod, state, tell, tenant
from tests.console.stand_in import Object, StandIn

_AFFINITY = "0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector."
_DEPLOYMENT = "apps/v1/namespaces/team-vision/deployments/resnet"


def runs(name: str, on: str, **status: Any) -> Object:
    return owned(pod(name, on=on, **status), "ReplicaSet", "resnet-5d")


def crowd(*pods: Object, nodes: StandIn) -> StandIn:
    on = known(*pods)
    on.lists |= nodes.lists
    on.states |= nodes.states
    on.uids |= nodes.uids
    only(on, _DEPLOYMENT)
    return on


def among_well(*pods: Object, states: tuple[NodeState, ...] = ()) -> StandIn:
    """After 24 pods that run well on the node gpu-c."""
    gpus = (gpu(*(tenant(f"c-{8 * index + n}", 1) for n in range(8)), index=index) for index in range(3))
    well = (runs(f"c-{n}", "gpu-c") for n in range(24))
    return crowd(*well, *pods, nodes=cluster(state(*gpus, on="gpu-c"), *states))


def pods_of(text: str) -> list[str]:
    return [line.removeprefix("Pod team-vision/") for line in text.splitlines() if line.startswith("Pod ")]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (state(gpu(), on="gpu-b", tenants_unknown="connection refused"), "tenants unknown: connection refused"),
        (state(on="gpu-b", waiting="NVML: driver not loaded"), "no GPU is shared yet: NVML: driver not loaded"),
    ],
)
def test_a_pod_whose_node_knows_no_tenants_is_explained_before_those_that_run_well(
    asked: Asked, said: NodeState, why: str
) -> None:
    text = explain(asked, among_well(runs("b-0", "gpu-b"), states=(said,)), "deploy/resnet")
    assert pods_of(text) == ["b-0: Running on gpu-b for 5 min", "c-0: Running on gpu-c for 5 min, and 23 more like it"]
    assert f"\n    gpu-b: {why}\n" in text


@pytest.mark.parametrize(
    ("of_node", "parts", "said"),
    [
        (closed("not Ready"), [part("gpu-b")], ("    gpu-b: it is not Ready", "    what node gpu-b says of itself: ")),
        (node("gpu-b"), [part("gpu-b")], ("    what node gpu-b says of itself: ",)),
        (node("gpu-b"), [], ("    gpu-b: no part of gpu-share runs there",)),
    ],
)
def test_a_pod_whose_node_does_not_answer_is_explained_before_those_that_run_well(
    asked: Asked, of_node: Object, parts: list[Object], said: tuple[str, ...]
) -> None:
    on = among_well(runs("b-0", "gpu-b"))
    on.lists["/api/v1/nodes"].append(of_node)
    on.lists["/api/v1/namespaces/gpu-share/pods"] += parts
    text = explain(asked, on, "deploy/resnet")
    assert pods_of(text)[0] == "b-0: Running on gpu-b for 5 min"
    assert all(f"\n{line}" in text for line in said), text


def test_a_node_that_is_not_ready_is_told_though_its_part_answers_still(asked: Asked) -> None:
    on = among_well(runs("b-0", "gpu-b"))
    on.lists["/api/v1/nodes"].append(closed("not Ready"))
    on.lists["/api/v1/namespaces/gpu-share/pods"].append(part("gpu-b"))
    tell(on, state(gpu(tenant("b-0", 2)), on="gpu-b"))
    text = explain(asked, on, "deploy/resnet")
    assert pods_of(text)[0] == "b-0: Running on gpu-b for 5 min"
    assert "\n    gpu-b: it is not Ready\n" in text


def test_an_unhealthy_gpu_is_told_before_an_old_fault_of_a_program_that_hit_others(asked: Asked) -> None:
    hit = gpu(*(tenant(f"a-{n}", 1) for n in range(8)))
    fault = ApplicationFault(xid=13, at=ago(minutes=1), tenants=tuple(one.name for one in hit.tenants))
    states = (
        state(msgspec.structs.replace(hit, application_fault=fault)),
        state(failed_gpu(tenant("b-0", 2)), on="gpu-b"),
    )
    pods = (*(runs(f"a-{n}", "gpu-a") for n in range(8)), runs("b-0", "gpu-b"))
    text = explain(asked, among_well(*pods, states=states), "deploy/resnet")
    assert pods_of(text) == [
        "b-0: Running on gpu-b for 5 min",
        "a-0: Running on gpu-a for 5 min, and 7 more like it",
        "c-0: Running on gpu-c for 5 min, and 23 more like it",
    ]


def test_pods_on_many_nodes_with_the_same_trouble_are_explained_once(asked: Asked) -> None:
    states = tuple(state(gpu(), on=f"b-{n}", tenants_unknown="connection refused") for n in range(15))
    silent = tuple(f"d-{n}" for n in range(15))
    on = among_well(*(runs(f"on-{name}", name) for name in (*(one.node for one in states), *silent)), states=states)
    on.lists["/api/v1/nodes"] += [node(name) for name in silent]
    on.lists["/api/v1/namespaces/gpu-share/pods"] += [part(name) for name in silent]
    assert pods_of(explain(asked, on, "deploy/resnet")) == [
        "on-b-0: Running on b-0 for 5 min, and 14 more like it",
        "on-d-0: Running on d-0 for 5 min, and 14 more like it",
        "c-0: Running on gpu-c for 5 min, and 23 more like it",
    ]


def test_a_pod_that_has_ended_well_needs_its_node_no_more(asked: Asked) -> None:
    pods = (runs(f"b-{n}", "gpu-b", phase="Succeeded") for n in range(4))
    said = state(gpu(), on="gpu-b", tenants_unknown="connection refused")
    assert pods_of(explain(asked, among_well(*pods, states=(said,)), "deploy/resnet")) == [
        "c-0: Running on gpu-c for 5 min, and 23 more like it",
        "b-0: Succeeded on gpu-b, created 5 min ago, and 3 more like it",
    ]


def waits(name: str, **spec: Any) -> Object:
    one = owned(pending(name, "0.2", _AFFINITY), "RayCluster", "train")
    one["spec"] |= spec
    return one


def required(key: str, *values: str, fields: str = "") -> Object:
    term: Object = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]} if key else {}
    if fields:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [fields]}]
    terms = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def explained(asked: Asked, *pods: Object) -> str:
    on = known(*pods)
    on.raw["/apis/ray.io/v1/namespaces/team-vision/rayclusters/train"] = (200, b'{"metadata": {"name": "train"}}')
    return explain(asked, on, "raycluster/train")


def test_pods_that_wait_for_nodes_of_other_labels_are_explained_each(asked: Asked) -> None:
    groups = (waits(f"a-{n}", nodeSelector={"pool": "a100"}) for n in range(20))
    text = explained(asked, *groups, *(waits(f"b-{n}", nodeSelector={"pool": "h100-spot"}) for n in range(5)))
    assert pods_of(text) == [
        "a-0: Pending for 5 min, and 19 more like it",
        "b-0: Pending for 5 min, and 4 more like it",
    ]
    assert "it lacks the label pool=a100\n" in text
    assert "it lacks the label pool=h100-spot\n" in text


def test_pods_that_wait_with_another_required_affinity_are_explained_each(asked: Asked) -> None:
    groups = (waits(f"a-{n}", **required("pool", "a100")) for n in range(20))
    assert pods_of(explained(asked, *groups, *(waits(f"b-{n}", **required("pool", "h100")) for n in range(5)))) == [
        "a-0: Pending for 5 min, and 19 more like it",
        "b-0: Pending for 5 min, and 4 more like it",
    ]


def test_pods_that_wait_with_other_tolerations_are_explained_each(asked: Asked) -> None:
    spot = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    assert pods_of(explained(asked, *(waits(f"a-{n}") for n in range(20)), waits("b", **spot))) == [
        "a-0: Pending for 5 min, and 19 more like it",
        "b: Pending for 5 min",
    ]


@pytest.mark.parametrize("how", ["fields", "affinity", "selector"])
def test_pods_that_wait_each_for_a_node_of_its_own_are_explained_once(asked: Asked, how: str) -> None:
    def own(n: int) -> Object:
        name = f"gpu-{n}"
        if how == "selector":
            return {"nodeSelector": {"kubernetes.io/hostname": name}}
        return required("", fields=name) if how == "fields" else required("kubernetes.io/hostname", name)

    pods = (waits(f"a-{n:02}", **own(n)) for n in range(30))
    assert pods_of(explained(asked, *pods, waits("b"))) == [
        "a-00: Pending for 5 min, and 29 more like it",
        "b: Pending for 5 min",
    ]
