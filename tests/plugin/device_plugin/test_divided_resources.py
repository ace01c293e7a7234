"""GPUs of one profile or model are a resource of their own, divided by a number of its own."""

from dataclasses import replace

from plugin.device_plugin.resources import Resources
from plugin.device_plugin.service import Resource
from plugin.settings import Settings
from plugin.shares.strategy import Mps, Whole
from plugin.simulated.gpus import simulated_gpus, simulated_node
from policies.cluster import Cluster
from policies.nodes import NodeRule
from tests.plugin.device_plugin.advertised import GPUS, Seen, healthy, seen
from tests.plugin.health.watched_node import SETTINGS, resources_of


def test_each_profile_of_mig_instances_is_a_resource_with_parts_of_its_own() -> None:
    served: list[Resource] = []
    small, large = (simulated_node(f"1xH100:2x{profile}").instances for profile in ("1g.10gb", "3g.40gb"))
    cluster = Cluster(vgpus_per_gpu=4, vgpus_per_instance={"1g.10gb": 2})
    known = resources_of(Settings(**SETTINGS), cluster, serve=served.append)
    known.publish([*seen(GPUS[0]), *seen(*small), *seen(large[0]), *seen(large[1], strategy="whole")])
    assert [(one.name, len(healthy(one)), type(one.sharing)) for one in served] == [
        ("gpu-share.dev/vgpu", 4, Mps),
        ("gpu-share.dev/vgpu-mig-1g.10gb", 4, Mps),
        ("gpu-share.dev/vgpu-mig-3g.40gb", 4, Mps),
        ("gpu-share.dev/gpu-mig-3g.40gb", 1, Whole),
    ]


def of_two_models(served: list[Resource]) -> tuple[Resources, list[Seen]]:
    """Give T4s with a device and a number of their own beside other GPUs."""
    t4s = simulated_gpus("2xT4")
    rules = (NodeRule(model="*T4*", device="t4", vgpus_per_gpu=3),)
    cluster = Cluster(vgpus_per_gpu=4, nodes=rules)
    known = resources_of(Settings(**SETTINGS), cluster, serve=served.append)
    return known, [*seen(GPUS[0]), *seen(t4s[0]), *seen(t4s[1], strategy="whole")]


def test_a_model_with_a_device_is_a_resource_with_parts_of_its_own() -> None:
    served: list[Resource] = []
    known, gpus = of_two_models(served)
    known.publish(gpus)
    assert [(one.name, len(healthy(one)), type(one.sharing)) for one in served] == [
        ("gpu-share.dev/vgpu", 4, Mps),
        ("gpu-share.dev/vgpu-model-t4", 3, Mps),
        ("gpu-share.dev/gpu-model-t4", 1, Whole),
    ]


def test_another_number_of_vgpus_leaves_a_model_with_its_own_as_it_is() -> None:
    served: list[Resource] = []
    known, gpus = of_two_models(served)
    known.publish(gpus)
    known.divide_by(8)
    known.publish(gpus)
    assert [(one.name.rpartition("/")[2], sum(healthy(one))) for one in served] == [
        ("vgpu", 8),
        ("vgpu-model-t4", 3),
        ("gpu-model-t4", 1),
    ]


def test_a_gpu_whose_number_becomes_anothers_stays_the_device_that_it_was() -> None:
    served: list[Resource] = []
    cluster = Cluster(nodes=(NodeRule(indexes=(0,), device="first", vgpus_per_gpu=3),))
    known = resources_of(Settings(**SETTINGS), cluster, serve=served.append)
    known.publish(seen(*GPUS[:2]))
    known.publish(seen(replace(GPUS[0], index=1), replace(GPUS[1], index=0)))
    assert [(one.name, [gpu.uuid for gpu in one.devices.pool.gpus]) for one in served] == [
        ("gpu-share.dev/vgpu-model-first", [GPUS[0].uuid]),
        ("gpu-share.dev/vgpu", [GPUS[1].uuid]),
    ]


def test_a_number_of_vgpus_by_dra_divides_no_gpu_that_the_kubelet_allocates_still() -> None:
    served: list[Resource] = []
    cluster = Cluster(nodes=(NodeRule(model="*", allocation="dra", vgpus_per_gpu=3),))
    known = resources_of(Settings(**SETTINGS), cluster, serve=served.append)
    known.publish(seen(*GPUS[:2]))
    assert len(healthy(served[0])) == 20
    known.divide_by(5)
    assert sum(healthy(served[0])) == 10


def test_another_number_of_vgpus_divides_instances_but_for_those_with_a_number_of_their_own() -> None:
    served: list[Resource] = []
    small, large = (simulated_node(f"1xH100:1x{profile}").instances for profile in ("1g.10gb", "3g.40gb"))
    cluster = Cluster(vgpus_per_gpu=4, vgpus_per_instance={"1g.10gb": 6})
    known = resources_of(Settings(**SETTINGS), cluster, serve=served.append)
    known.publish([*seen(GPUS[0]), *seen(*small), *seen(*large), *seen(GPUS[1], strategy="whole")])
    known.divide_by(8)
    known.publish([*seen(GPUS[0]), *seen(*small), *seen(*large), *seen(GPUS[1], strategy="whole")])
    assert [(one.name.rpartition("/")[2], sum(healthy(one))) for one in served] == [
        ("vgpu", 8),
        ("vgpu-mig-1g.10gb", 6),
        ("vgpu-mig-3g.40gb", 8),
        ("gpu", 1),
    ]
