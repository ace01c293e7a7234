"""Of many pods `gpu-share explain` tells those apart of which something else would be said."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from policies.node_state import Fault, Use
from tests.console.explained import Asked, explain
from tests.console.objects import GIB, ago, cluster, gpu, node, part, pending, pod, state, tenant
from tests.console.stand_in import Object
from tests.console.test_explain_many import crowd, made, pods_of

_OTHER = 17  # of thirty
_OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
_CRASHES = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}}


def thirty(of: Callable[[str, bool], Object]) -> list[Object]:
    """Make pods by their name and whether they are the other one."""
    return [made(of(f"a-{n:02}", n == _OTHER), created=ago(minutes=60 - n)) for n in range(30)]


def status(name: str, *, is_ready: bool = True, **states: Any) -> Object:
    return {"name": name, "ready": is_ready, "state": {"running": {}}, **states}


def one_of_two(which: str, **states: Any) -> list[Object]:
    return [status(name, **(states if name == which else {})) for name in ("exporter", "main")]


def ended_with(message: str) -> list[Object]:
    return [status("main", state={"terminated": {"reason": "Error", "exitCode": 1, "message": message}})]


def rejected(why: str) -> dict[str, Any]:
    return {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": f"Pod was rejected: Allocate: {why}"}


ALIKE_BUT_FOR_ONE: dict[str, Callable[[str, bool], Object]] = {
    "one that is not ready": lambda name, other: pod(name, containerStatuses=[status("main", is_ready=not other)]),
    "another container that was killed": lambda name, other: pod(
        name, containerStatuses=one_of_two("main" if other else "exporter", lastState=_OOM)
    ),
    "another container that crashes": lambda name, other: pod(
        name, containerStatuses=one_of_two("main" if other else "exporter", state=_CRASHES, ready=False)
    ),
    "a volume in the way": lambda name, other: pending(
        name,
        "0.4",
        f"0/3 nodes are available: {1 if other else 3} Insufficient gpu-share.dev/vgpu"
        f"{', 2 node(s) had volume node affinity conflict' * other}.",
    ),
    "a claim that is missing": lambda name, other: pending(
        name, "0.4", f'persistentvolumeclaim "d-{name}" not found' if other else "pod has unbound immediate claims"
    ),
    "another message of a program": lambda name, other: pod(
        name,
        phase="Failed",
        containerStatuses=ended_with("no CUDA-capable device is detected" if other else f"/data/{name}.csv is missing"),
    ),
    "another message of the kubelet": lambda name, other: pod(
        name, **rejected("No space left on device" if other else "its compute mode is prohibited")
    ),
}


@pytest.mark.parametrize("what", ALIKE_BUT_FOR_ONE)
def test_the_one_that_differs_is_explained_beside_the_others(asked: Asked, what: str) -> None:
    told = pods_of(explain(asked, crowd(*thirty(ALIKE_BUT_FOR_ONE[what])), "deploy/resnet"))
    assert len(told) == 2, told
    assert sum(one.startswith(f"a-{_OTHER}:") and "more like it" not in one for one in told) == 1, told
    assert sum(one.endswith("and 28 more like it") for one in told) == 1, told


def test_a_container_that_runs_and_is_not_ready_is_said_to_be_so(asked: Asked) -> None:
    on = crowd(*thirty(ALIKE_BUT_FOR_ONE["one that is not ready"]))
    assert pods_of(explain(asked, on, "deploy/resnet"))[0].startswith(f"a-{_OTHER}: Running")
    assert '    container "main" is not ready\n' in explain(asked, on, f"a-{_OTHER}")
    assert "not ready" not in explain(asked, on, "a-00")


def on_gpus(others: Iterable[int] = (), **of_other: Any) -> Any:
    """Put forty pods on four GPUs, some of which are of another kind."""
    tenants = ([tenant(f"a-{10 * index + n:02}", 1) for n in range(10)] for index in range(4))
    return state(*(gpu(*some, index=at, **(of_other if at in others else {})) for at, some in enumerate(tenants)))


def test_one_that_its_node_knows_on_no_gpu_comes_before_those_that_are_on_one(asked: Asked) -> None:
    pods = [made(pod(name, "0.1")) for name in (*(f"a-{n:02}" for n in range(29)), "lost")]
    assert pods_of(explain(asked, crowd(*pods, state=on_gpus()), "deploy/resnet")) == [
        "lost: Running on gpu-a for 5 min",
        "a-00: Running on gpu-a for 5 min, and 28 more like it",
    ]


def test_faults_of_one_source_are_told_apart_by_what_is_said_of_them(asked: Asked) -> None:
    whys = ("a fatal fault of one client ended the contexts of all", "get_server_list: no answer within 3 s")
    faults = [(Fault(source="mps", why=why, since=ago(minutes=3), comes_back="by itself"),) for why in whys]
    tenants = [[tenant(f"a-{10 * index + n:02}", 1) for n in range(10)] for index in range(3)]
    gpus = [gpu(*some, index=at, healthy=False, faults=faults[at == 2]) for at, some in enumerate(tenants)]
    pods = [made(pod(f"a-{n:02}", "0.1")) for n in range(30)]
    assert pods_of(explain(asked, crowd(*pods, state=state(*gpus)), "deploy/resnet")) == [
        "a-00: Running on gpu-a for 5 min, and 19 more like it",
        "a-20: Running on gpu-a for 5 min, and 9 more like it",
    ]


def test_those_whose_neighbours_take_more_than_their_share_are_told_apart(asked: Asked) -> None:
    end = {"terminated": {"exitCode": 1, "reason": "Error", "message": "CUDA out of memory"}}
    out = [status("main", lastState=end)]
    pods = [made(pod(f"a-{n:02}", "0.1", containerStatuses=out)) for n in range(30)]
    tenants = [[tenant(f"a-{5 * index + n:02}", 1) for n in range(5)] for index in range(6)]
    hog = tenant("hog", 2, use=Use(memory_bytes=130 * GIB))
    gpus = [gpu(*some, *([hog] if at == 5 else []), index=at) for at, some in enumerate(tenants)]
    assert pods_of(explain(asked, crowd(*pods, state=state(*gpus)), "deploy/resnet")) == [
        "a-00: Running on gpu-a for 5 min, and 24 more like it",
        "a-25: Running on gpu-a for 5 min, and 4 more like it",
    ]


def test_nodes_that_say_nothing_are_told_apart_by_why_and_not_by_their_names(asked: Asked) -> None:
    nodes = [f"gpu-{letter}" for letter in "abcdefghij"]
    on = crowd(*(made(pod(f"a-{n:02}", on=nodes[n % 10])) for n in range(30)))
    seen = cluster(*(state(gpu(), on=one) for one in nodes))
    on.lists["/api/v1/nodes"] = [node(one) for one in nodes]
    on.lists["/api/v1/namespaces/gpu-share/pods"] = [part(one) for one in nodes]
    on.states.clear()
    on.uids.update(seen.uids)
    on.states["gpu-share-plugin-gpu-c:9407"] = lambda: (200, b"no JSON")
    assert pods_of(explain(asked, on, "deploy/resnet")) == [
        "a-00: Running on gpu-a for 5 min, and 26 more like it",
        "a-02: Running on gpu-c for 5 min, and 2 more like it",
    ]


def test_messages_that_differ_from_pod_to_pod_leave_room_for_what_else_is_wrong(asked: Asked) -> None:
    words = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    fails = (made(pod(f"a-{word}", phase="Failed", containerStatuses=ended_with(f"lost {word}"))) for word in words)
    waits = made(pending("b", "0.4", "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."))
    told = pods_of(explain(asked, crowd(*fails, waits, made(pod("c"))), "deploy/resnet"))
    assert [one.partition(":")[0] for one in told[:7]] == ["a-aa", "a-ab", "a-ac", "a-ad", "a-ae", "b", "c"]
    assert len(told) == 20


def test_the_one_that_failed_last_stands_for_the_others_whenever_it_was_created(asked: Asked) -> None:
    def failed(name: str, created: int, ended: int) -> Object:
        end = {"reason": "Error", "exitCode": 1, "finishedAt": ago(minutes=ended)}
        statuses = [status("main", state={"terminated": end})]
        return made(pod(name, phase="Failed", containerStatuses=statuses), created=ago(minutes=created))

    pods = [*(failed(f"a-{n:02}", 300, 290) for n in range(28)), failed("old", 600, 1), failed("new", 200, 199)]
    assert pods_of(explain(asked, crowd(*pods), "deploy/resnet")) == [
        "old: Failed on gpu-a for 1 min, and 29 more like it"
    ]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_is_over_since_its_last_container_ended(asked: Asked, phase: str) -> None:
    ends = [{"exitCode": 0, "reason": "Completed", "finishedAt": ago(minutes=minutes)} for minutes in (50, 2)]
    statuses = [status(f"c{n}", state={"terminated": end}) for n, end in enumerate(ends)]
    on = crowd(made(pod("a", phase=phase, containerStatuses=statuses), created=ago(minutes=60)))
    assert pods_of(explain(asked, on, "a")) == [f"a: {phase} on gpu-a for 2 min"]
