"""`gpu-share explain` of a pod that waits in a cluster of many nodes: they are told together."""

import pytest

from policies.node_state import NodeState
from tests.console.explained import OURS, Asked, explain
from tests.console.objects import cluster, failed_gpu, gpu, node, pending, state, tenant
from tests.console.stand_in import Object, StandIn

LATE = pending("late", "0.5", "0/500 nodes are available.")


def of_nodes(*states: NodeState, others: tuple[Object, ...] = ()) -> StandIn:
    on = cluster(*states, pods=(LATE,))
    on.lists["/api/v1/nodes"] += others
    on.lists[f"{OURS}/pods"] = [LATE]
    on.lists[f"{OURS}/events"] = []
    return on


def lines(asked: Asked, on: StandIn) -> list[str]:
    return [one.strip() for one in explain(asked, on, "late").splitlines() if "gpu-0" in one or "more" in one]


def full(number: int, *, taken: int = 8) -> NodeState:
    return state(gpu(tenant("a", taken)), on=f"gpu-{number:03}")


def test_nodes_of_which_the_same_is_said_are_told_together(asked: Asked) -> None:
    others = tuple({**node(f"gpu-{number:03}"), "spec": {"unschedulable": True}} for number in (20, 21))
    on = of_nodes(*(full(number) for number in range(22)), others=())
    on.lists["/api/v1/nodes"][20:] = others
    assert lines(asked, on) == [
        "gpu-000, gpu-001, gpu-002 and 17 nodes more: no GPU has 0.5 free: GPU 0 has 0.2",
        "gpu-020, gpu-021: it is cordoned; no GPU has 0.5 free: GPU 0 has 0.2",
    ]


def test_few_nodes_have_a_line_each(asked: Asked) -> None:
    assert [one.partition(":")[0] for one in lines(asked, of_nodes(*map(full, range(10))))] == [
        f"gpu-{number:03}" for number in range(10)
    ]


def test_many_nodes_that_differ_by_numbers_are_told_together_with_those_of_one(asked: Asked) -> None:
    taken = [(6 + number % 4, 6 + number // 4 % 4) for number in range(30)]
    states = (
        state(*(gpu(tenant("a", parts), index=index) for index, parts in enumerate(of)), on=f"gpu-{number:03}")
        for number, of in enumerate(taken)
    )
    (told,) = lines(asked, of_nodes(*states))
    assert told.startswith("gpu-000, gpu-001, gpu-002 and 27 nodes more: no GPU has 0.5 free: GPU 0 has 0.4, GPU 1 has")
    assert told.endswith(" 0.4 (of gpu-000; of the others with other numbers)")


def test_of_many_reasons_a_few_are_told_and_the_other_nodes_counted(asked: Asked) -> None:
    on = of_nodes(*(full(number) for number in range(30)))
    for index, one in enumerate(on.lists["/api/v1/nodes"]):
        one["spec"] = {"taints": [{"key": "abcdefghijklmnopqrstuvwxyzABCD"[index], "effect": "NoSchedule"}]}
    told = lines(asked, on)
    assert (len(told), told[-1]) == (11, "and 20 nodes more")


def tainted(on: StandIn, number: int) -> StandIn:
    """The first *number* of nodes have each a taint of its own."""
    for index, one in enumerate(on.lists["/api/v1/nodes"][:number]):
        one["spec"] = {"taints": [{"key": f"team{index}.corp/only", "effect": "NoSchedule"}]}
    return on


@pytest.mark.parametrize("at", [0, 13, 29])
def test_of_many_nodes_the_one_that_nothing_keeps_the_pod_off_is_told_first(asked: Asked, at: int) -> None:
    on = tainted(of_nodes(*(full(number, taken=0 if number == at else 8) for number in range(30))), 30)
    on.lists["/api/v1/nodes"][at]["spec"] = {}
    told = lines(asked, on)
    assert told[0].startswith(f"gpu-{at:03}: nothing seen of its GPUs keeps the pod off")
    assert told[-1] == "and 20 nodes more"


def test_of_many_nodes_what_is_said_of_most_is_told_before_what_is_said_of_one(asked: Asked) -> None:
    told = lines(asked, tainted(of_nodes(*map(full, range(30))), 12))
    assert told[0] == "gpu-012, gpu-013, gpu-014 and 15 nodes more: no GPU has 0.5 free: GPU 0 has 0.2"


def test_taints_of_other_names_are_no_other_numbers(asked: Asked) -> None:
    told = lines(asked, tainted(of_nodes(*map(full, range(12))), 12))
    assert told[0].startswith("gpu-000: the pod does not tolerate its taint team0.corp/only; no GPU")
    assert told[-1] == "and 2 nodes more"


def test_many_nodes_that_differ_by_their_lists_of_gpus_are_told_together_but_for_unhealthy_ones(asked: Asked) -> None:
    some = [
        tuple(gpu(tenant("a", 6 + n // 4 % 4), index=index, hidden=n % 2) for index in range(1 + n % 4))
        for n in range(30)
    ]
    some[20] = (gpu(tenant("a", 8)), failed_gpu())
    told = lines(asked, of_nodes(*(state(*gpus, on=f"gpu-{n:03}") for n, gpus in enumerate(some))))
    assert [one.partition(":")[0] for one in told] == ["gpu-000, gpu-001, gpu-002 and 26 nodes more", "gpu-020"]
