"""Which devices a node has: as many of each size as fit, in the order in which the scheduler should take them."""

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.dra.claims import Allocated, wanted_devices
from plugin.dra.devices import devices_of, grids_of
from plugin.dra.grids import Grid
from plugin.dra.slices import slice_specs
from plugin.errors import ClaimError
from plugin.gpus.gpu import Gpu
from plugin.pod_resources.tenants import Tenant
from plugin.simulated.gpus import simulated_node
from policies.contract import SharingStrategy
from policies.nodes import NodeRule
from policies.sizes import Size, devices_per_gpu
from tests.plugin.dra.gpus import Shared, divided, gpu, shared

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@settings(deadline=None)
@given(st.integers(1, 34), st.integers(0, 4), st.sampled_from(["mps", "time-slicing", "whole"]))
def test_each_gpu_has_as_many_devices_of_a_size_as_fit(vgpus: int, count: int, strategy: SharingStrategy) -> None:
    devices = devices_of(shared(count, strategy), division=divided(vgpus), kept={})
    assert len({one.name for one in devices}) == len(devices)
    assert all(LABEL.fullmatch(one.name) for one in devices)
    on_one = [one for one in devices if len(one.gpus) == 1]
    assert len(on_one) == count * (1 if strategy == "whole" else devices_per_gpu(vgpus))
    for (_, size), number in Counter((one.gpus[0].uuid, one.size) for one in on_one).items():
        assert number * size.milli <= 1000 < (number + 1) * size.milli or strategy == "whole"


@pytest.mark.parametrize("strategy", ["mps", "time-slicing", "whole"])
def test_who_reads_the_name_of_a_device_knows_its_gpu_and_its_size(strategy: SharingStrategy) -> None:
    for one in devices_of(shared(2, strategy), division=divided(7), kept={}):
        tenant = Tenant(namespace="n", pod="p", container="c", vgpus=(), devices=(one.name,))
        expected = {gpu.uuid: (one.size.milli,) for gpu in one.gpus} if len(one.gpus) == 1 else {}
        assert {gpu.gpu.uuid: sizes for gpu in shared(2) if (sizes := tenant.sizes_on(gpu.gpu.uuid))} == expected


def test_one_gpu_is_filled_before_the_next_and_several_come_last() -> None:
    devices = devices_of([*reversed(shared(3, "time-slicing"))], division=divided(4), kept={})
    assert [one.gpus[0].index for one in devices if one.size.milli == 250] == [0] * 4 + [1] * 4 + [2] * 4
    assert [len(one.gpus) for one in devices] == sorted(len(one.gpus) for one in devices)


def test_a_gpu_that_is_divided_too_finely_has_what_is_held_and_what_an_earlier_grid_had() -> None:
    two = shared(2)
    (before,) = grids_of(two[:1], divided(2))
    assert grids_of(two, divided(40)) == ()
    held = {"gpu-held": (Size("mps", 300), Fraction(3, 10), (two[1].gpu.uuid,))}
    devices = devices_of(two, division=divided(40), kept=held, earlier=[before])
    assert [(one.gpus[0].index, one.size.milli) for one in devices] == [(0, 500), (0, 500), (0, 1000), (1, 300)]
    assert all(one.is_earlier and not one.is_void for one in devices)


def test_under_mps_no_device_has_several_gpus() -> None:
    assert {len(one.gpus) for one in devices_of(shared(8), division=divided(10), kept={})} == {1}


def test_several_gpus_are_next_to_the_same_cpus_where_so_many_are() -> None:
    eight = [Shared(gpu(index, numa=index // 4, root=f"pci0000:{index // 2}0"), "whole") for index in range(8)]
    groups: dict[int, list[tuple[int, ...]]] = {}
    for one in devices_of(eight, division=divided(10), kept={}):
        groups.setdefault(one.size.gpus, []).append(tuple(each.index for each in one.gpus))
    assert groups[2][:4] == [(0, 1), (2, 3), (4, 5), (6, 7)]  # below one PCIe root
    for count in (2, 3, 4):
        assert all(len({index // 4 for index in group}) == 1 for group in groups[count])
    assert {count: len(found) for count, found in groups.items()} == {1: 8, 2: 12, 3: 8, 4: 2, 5: 56, 6: 28, 7: 8, 8: 1}


def test_on_a_large_node_several_gpus_are_neighbours() -> None:
    devices = devices_of(shared(16, "whole"), division=divided(10), kept={})
    eights = [[each.index for each in one.gpus] for one in devices if one.size.gpus == 8]
    assert eights == [list(range(start, start + 8)) for start in range(9)]


def test_a_device_that_is_held_stays_and_one_of_a_gpu_that_is_unknown_does_not() -> None:
    of_old_grid = {"gpu-00000000-300m-0": (Size("mps", 300), Fraction(3001, 10000), ("GPU-00000000",))}
    gone = {"gpu-9-100m-0": (Size("mps", 100), Fraction(1, 10), ("GPU-9",))}
    devices = devices_of(shared(1), division=divided(4), kept=of_old_grid | gone)
    held = [(one.name, one.part, one.is_earlier) for one in devices if one.size.milli == 300]
    assert held == [("gpu-00000000-300m-0", Fraction(3001, 10000), True)]
    assert not [one for one in devices if one.size.milli == 100]


def test_what_is_held_of_several_gpus_of_which_one_is_gone_still_counts_for_the_others() -> None:
    (pair,) = (one for one in devices_of(shared(2, "whole"), division=divided(), kept={}) if len(one.gpus) == 2)
    kept = {pair.name: (pair.size, pair.part, tuple(gpu.uuid for gpu in pair.gpus))}
    (left, held) = devices_of(shared(1, "whole"), division=divided(), kept=kept)
    assert left.size.milli == 1000
    assert held == replace(pair, gpus=left.gpus, is_earlier=True, missing=("GPU-00000001",))
    assert held.fault({"GPU-00000000": "XID 79"}) == "GPU-00000000: XID 79; GPU-00000001: NVML does not list it"
    with pytest.raises(ClaimError, match=r"GPU-00000001 is gone from this node: delete the pod"):
        wanted_devices([Allocated(request="r", name=pair.name, device_class=pair.size.device_class)], {pair.name: held})
    assert pair in devices_of(shared(2, "whole"), division=divided(), kept=kept)


@pytest.mark.parametrize(("strategy", "is_void"), [("mps", False), ("time-slicing", True)])
def test_what_is_held_is_prepared_anew_where_its_gpu_has_its_strategy_still(
    strategy: SharingStrategy, *, is_void: bool
) -> None:
    kept = {"gpu-00000000-300m-0": (Size("mps", 300, "model-t4"), Fraction(3, 10), ("GPU-00000000",))}
    before = Grid(gpu="GPU-00000000", strategy="mps", device="model-t4", parts=10)
    for earlier in ([], [before]):
        devices = devices_of(shared(1, strategy), division=divided(4), kept=kept, earlier=earlier)
        assert [one.is_void for one in devices if one.name in kept] == [is_void]


@pytest.mark.parametrize("strategy", ["mps", "time-slicing", "whole"])
def test_whatever_gpus_are_called_all_devices_have_names_that_the_api_server_takes(strategy: SharingStrategy) -> None:
    names: list[str] = []
    for device in ("a", "l40s-48gb-inferenc", "l40s-48gb-inference", "l40s-48gb-inference2", "l40s-48gb-inference3"):
        rule = NodeRule(device=device, vgpus_per_gpu=None if strategy == "whole" else 4)
        made = devices_of(shared(8, strategy), division=divided(10, rule), kept={})
        assert all(LABEL.fullmatch(one.name) for one in made)
        names += [one.name for one in made if len(one.gpus) > 1]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("uuid", ["GPU-" + "0" * 59, "GPU-Zürich", "GPU-1_2", "GPU-" + "f" * 40 + "-"])
def test_a_uuid_that_is_no_label_becomes_a_digest(uuid: str) -> None:
    (one,) = devices_of([Shared(gpu(0, uuid=uuid))], division=divided(1), kept={})
    assert LABEL.fullmatch(one.name)


def test_the_devices_of_mig_instances_carry_their_profile_and_no_two_are_together() -> None:
    node = simulated_node("2xH100:2x3g.40gb")
    instances = [Shared(one) for one in node.instances]
    devices = devices_of(instances, division=divided(2), kept={})
    assert [one.size for one in devices[:3]] == [
        Size("mps", 500, "mig-3g.40gb"),
        Size("mps", 500, "mig-3g.40gb"),
        Size("mps", 1000, "mig-3g.40gb"),
    ]
    assert len(devices) == 4 * 3
    assert all(LABEL.fullmatch(one.name) for one in devices)
    whole = devices_of([Shared(one, "whole") for one in node.instances], division=divided(), kept={})
    assert [(one.size.milli, len(one.gpus)) for one in whole] == [(1000, 1)] * 4
    specs = slice_specs(whole, [Shared(one, "whole") for one in node.instances], node="n", driver_version="1")
    first = specs[1]["devices"][0]
    assert first["attributes"]["profile"] == {"string": "3g.40gb"}
    assert first["attributes"]["parentUUID"] == {"string": node.gpus[0].uuid}
    assert first["attributes"]["size"] == {"string": "1000m-whole-mig-3g.40gb"}


def t4(index: int) -> Gpu:
    return replace(gpu(index), model="Tesla T4")


def test_a_device_of_nodes_has_the_sizes_of_its_own_grid_and_no_gpu_is_together_with_others() -> None:
    mixed = [Shared(gpu(0), "time-slicing"), Shared(t4(1), "time-slicing"), Shared(t4(2), "time-slicing")]
    rule = NodeRule(model="*T4*", device="t4", vgpus_per_gpu=4)
    devices = devices_of(mixed, division=divided(10, rule), kept={})
    of_t4 = [one for one in devices if one.size.device]
    assert {one.size.name for one in of_t4} == {
        *(f"{milli}m-timesliced-model-t4" for milli in (250, 500, 750, 1000, 2000)),
    }
    assert {one.gpus[0].index for one in of_t4} == {1, 2}
    assert len({one.name for one in devices}) == len(devices)
    assert all(LABEL.fullmatch(one.name) for one in devices)


def test_without_a_device_the_sizes_are_of_the_gpus_own_number_and_those_of_all_gpus() -> None:
    rule = NodeRule(model="*T4*", allocation="dra", vgpus_per_gpu=4)
    devices = devices_of([Shared(gpu(0)), Shared(t4(1))], division=divided(10, rule), kept={})
    sizes = {index: {one.size.name for one in devices if one.gpus[0].index == index} for index in (0, 1)}
    assert sizes[1] == {"250m", "500m", "750m", "1000m"}
    assert sizes[0] & sizes[1] == {"500m", "1000m"}
