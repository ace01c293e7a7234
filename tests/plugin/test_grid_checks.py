"""A number of vGPUs that is too fine for DRA, or for MPS, counts for the GPUs that it concerns, and for no others."""

from dataclasses import replace

import pytest

from plugin.allocators import allocations
from plugin.errors import DraError, MpsError
from plugin.gpus.gpu import Gpu, MigInstance
from plugin.gpus.numbers import GpuNumbers
from plugin.gpus.reading import NotShareableError, any_gpu
from plugin.grid_checks import check_of_grids, dividing, lost_at_a_start
from plugin.shares.division import Division
from plugin.shares.strategy import misfits, strategies
from policies.cluster import Cluster
from policies.contract import Allocation
from policies.nodes import NodeRule
from tests.plugin.dra.gpus import Shared, shared

FINE, COARSE = 40, 20
DRA_FIRST = NodeRule(indexes=(0,), allocation="dra", vgpus_per_gpu=COARSE)
KUBELET_ALL = NodeRule(allocation="device-plugin")


class Node:
    """Two GPUs, each allocated as `nodes` or the default says."""

    def __init__(self, vgpus_per_gpu: int, *nodes: NodeRule, default: Allocation) -> None:
        cluster, number_of = Cluster(vgpus_per_gpu=vgpus_per_gpu, nodes=nodes), GpuNumbers(None, ()).of
        self.division = Division(cluster, node_name="node", number_of=number_of)
        self.allocation_of = allocations(cluster, node_name="node", number_of=number_of, default=default)
        self.strategy_of = strategies(cluster, node_name="node", number_of=number_of, default="mps")

    def is_shared(self, gpu: Gpu) -> bool:
        try:
            check_of_grids(any_gpu, self.allocation_of, self.strategy_of, self.division.parts)(gpu)
        except NotShareableError as error:
            assert "at most 34 fits" in str(error)  # noqa: PT017 - what it says where it is raised
            return False
        return True


@pytest.mark.parametrize(
    ("nodes", "default", "are_shared"),
    [
        ((), "device-plugin", [True, True]),
        ((), "dra", [False, False]),
        ((KUBELET_ALL,), "dra", [True, True]),
        ((NodeRule(indexes=(1,), allocation="device-plugin"),), "dra", [False, True]),
        ((NodeRule(strategy="whole"),), "dra", [True, True]),
        ((NodeRule(strategy="none"),), "dra", [True, True]),
        ((DRA_FIRST,), "device-plugin", [True, True]),
        ((DRA_FIRST,), "dra", [True, False]),
        ((NodeRule(indexes=(0,), device="t4", vgpus_per_gpu=FINE),), "dra", [False, False]),
    ],
)
def test_a_gpu_whose_number_is_too_fine_costs_itself_alone(
    nodes: tuple[NodeRule, ...], default: Allocation, are_shared: list[bool]
) -> None:
    node = Node(FINE, *nodes, default=default)
    assert [node.is_shared(one.gpu) for one in shared(2)] == are_shared


@pytest.mark.parametrize(
    ("nodes", "default", "is_divided"),
    [
        ((), "device-plugin", True),
        ((KUBELET_ALL,), "dra", True),
        ((DRA_FIRST,), "device-plugin", True),
        ((DRA_FIRST,), "dra", False),
        ((), "dra", False),
    ],
)
def test_a_number_is_taken_up_where_each_gpu_of_dra_can_be_divided_by_it(
    nodes: tuple[NodeRule, ...], default: Allocation, *, is_divided: bool
) -> None:
    node = Node(10, *nodes, default=default)
    gpus: list[Shared] = []
    numbers: list[int] = []
    divide = dividing(numbers.append, node.division, node.allocation_of, lambda: gpus)
    divide(FINE)
    gpus += shared(2)
    if is_divided:
        divide(FINE)
    else:
        with pytest.raises(DraError, match="vgpusPerGpu 40 needs 158 devices"):
            divide(FINE)
    divide(COARSE)
    assert numbers == [FINE, *([FINE] if is_divided else []), COARSE]


@pytest.mark.parametrize("default", ["device-plugin", "dra"])
@pytest.mark.parametrize(
    ("nodes", "clients", "is_divided"),
    [
        ((), COARSE - 1, False),
        ((), COARSE, True),
        ((), 0, False),
        ((NodeRule(strategy="time-slicing"),), COARSE - 1, True),
        ((NodeRule(strategy="whole"),), COARSE - 1, True),
        ((NodeRule(device="t4", vgpus_per_gpu=10),), COARSE - 1, True),
    ],
)
def test_a_number_is_taken_up_where_mps_serves_a_client_in_each_vgpu(
    nodes: tuple[NodeRule, ...], clients: int, default: Allocation, *, is_divided: bool
) -> None:
    node = Node(10, *nodes, default=default)
    numbers: list[int] = []
    gpus = [
        replace(one, gpu=replace(one.gpu, mps_clients=clients), strategy=node.strategy_of(one.gpu) or "mps")
        for one in shared(2)
    ]
    divide = dividing(numbers.append, node.division, node.allocation_of, lambda: gpus)
    if is_divided:
        divide(COARSE)
    else:
        with pytest.raises(MpsError, match="older than Volta" if not clients else "more than the 19 clients that MPS"):
            divide(COARSE)
    assert numbers == [COARSE] * is_divided


@pytest.mark.parametrize(
    ("nodes", "clients", "lost"),
    [
        ((), (48, 48), ()),
        ((), (19, 48), (0,)),
        ((), (19, 18), (0, 1)),
        ((NodeRule(indexes=(0,), strategy="time-slicing"),), (19, 18), (1,)),
        ((NodeRule(indexes=(0,), strategy="none"), NodeRule(strategy="whole")), (19, 18), ()),
    ],
)
def test_a_start_by_which_gpus_would_not_be_shared_names_each_of_them(
    nodes: tuple[NodeRule, ...], clients: tuple[int, int], lost: tuple[int, ...]
) -> None:
    node = Node(COARSE, *nodes, default="device-plugin")
    gpus = [replace(one, gpu=replace(one.gpu, mps_clients=few)) for one, few in zip(shared(2), clients, strict=True)]
    why = lost_at_a_start(gpus, node.allocation_of, node.strategy_of, node.division.parts)
    assert [number for number, one in enumerate(gpus) if one.gpu.uuid in why] == [*lost]
    assert why.count("lower it in _cluster.yaml") == bool(lost)


def test_a_start_by_which_the_scheduler_could_not_look_through_a_gpu_is_named() -> None:
    node = Node(FINE, default="dra")
    why = lost_at_a_start(shared(1), node.allocation_of, node.strategy_of, node.division.parts)
    assert "at most 34 fits" in why


def test_all_instances_with_too_many_vgpus_get_one_setting_that_is_right_for_each() -> None:
    profiles = {"3g.71gb": 20, "2g.35gb": 14}
    gpus = [
        replace(
            one.gpu,
            mps_clients=clients,
            instance=MigInstance(profile=profile, parent_uuid="GPU-a", gpu_instance=number, compute_instance=0),
        )
        for number, (one, (profile, clients)) in enumerate(zip(shared(2), profiles.items(), strict=True))
    ]
    why = misfits((gpu, "mps", 30) for gpu in gpus)
    assert why.endswith("write vgpusPerInstance: {3g.71gb: 20, 2g.35gb: 14} in _cluster.yaml, or mig: whole")
    assert all(gpu.uuid in why for gpu in gpus)


@pytest.mark.parametrize("instances", [True, False])
def test_the_sentence_on_a_full_node_is_short_enough_to_be_shown_whole(*, instances: bool) -> None:
    (one,) = shared(1)
    gpus = []
    for number in range(56):
        uuid = f"{'MIG' if instances else 'GPU'}-00000000-0000-0000-0000-{number:012}"
        placed = MigInstance(profile="1g.18gb", parent_uuid="GPU-a", gpu_instance=number, compute_instance=0)
        gpus.append(replace(one.gpu, uuid=uuid, mps_clients=6, instance=placed if instances else None))
    why = misfits((gpu, "mps", 10) for gpu in gpus)
    assert "and 54 more" in why
    assert len(f"vgpusPerGpu 6 -> 10: {why}") < 400  # of 500 that `plugin status` shows
    assert why.endswith("mig: whole" if instances else "with `nodes` in _cluster.yaml")


def test_nor_is_it_longer_where_instances_have_many_profiles() -> None:
    (one,) = shared(1)
    gpus = []
    for number, profile in enumerate(("1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")):
        placed = MigInstance(profile=profile, parent_uuid="GPU-a", gpu_instance=number, compute_instance=0)
        uuid = f"MIG-00000000-0000-0000-0000-{number:012}"
        gpus.append(replace(one.gpu, uuid=uuid, mps_clients=6 + number, instance=placed))
    why = misfits((gpu, "mps", 70) for gpu in gpus)
    assert "likewise those of 3 more profiles" in why
    assert len(f"vgpusPerGpu 6 -> 70: {why}") < 400
    assert all(f"{gpu.profile}: {gpu.mps_clients}" in why for gpu in gpus)
