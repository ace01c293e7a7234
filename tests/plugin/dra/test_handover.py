"""How a container gets its GPU by DRA: ours holds it to its share, and NVIDIA's device, if there is one, brings it."""

from pathlib import Path
from typing import Any

import pytest

from plugin.dra.claims import Wanted
from plugin.dra.containers import held_device
from plugin.dra.devices import devices_of
from plugin.shares.handover import HandoverSettings
from plugin.shares.nvidia_devices import NvidiaDevices
from plugin.shares.strategy import Mps
from policies.cluster import Cluster
from policies.contract import Handover, SharingStrategy
from tests.plugin.dra.gpus import divided, shared

THEIRS = {"GPU-00000000": "nvidia.com/gpu=0", "GPU-00000001": "nvidia.com/gpu=1"}


def held(
    directory: Path,
    ways: set[Handover],
    milli: int,
    *,
    strategy: SharingStrategy = "mps",
    names: Any = None,
    vgpus: int = 10,
    serving: Mps | None = None,
) -> Any:
    nvidia = NvidiaDevices(())
    nvidia.names = THEIRS if names is None else names
    handover = HandoverSettings(ways=frozenset(ways), cdi_dir=directory / "cdi", nvidia=nvidia, mps=lambda: serving)
    division = divided(vgpus)
    devices = devices_of(shared(2, strategy), division=division, kept={})
    device = next(one for one in devices if one.size.milli == milli)
    wanted = Wanted(request="r", device=device)
    return held_device(wanted, division=division, cluster=Cluster(vgpus_per_gpu=vgpus), handover=handover)


def environment(one: Any) -> dict[str, str]:
    return dict(text.split("=", 1) for text in one.edits["env"])


def test_nvidias_device_brings_the_gpu_and_ours_tells_the_runtime_to_bring_none(directory: Path) -> None:
    one = held(directory, {"cdi"}, 200)
    assert one.others == ("nvidia.com/gpu=0",)
    assert environment(one)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert environment(one)["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "20"


@pytest.mark.parametrize(("ways", "names"), [({"cdi"}, {}), ({"envvar"}, None), ({"cdi"}, {"GPU-00000001": "x"})])
def test_without_it_the_runtime_brings_the_gpu(directory: Path, ways: set[Handover], names: Any) -> None:
    one = held(directory, ways, 200, names=names)
    assert one.others == ()
    assert environment(one)["NVIDIA_VISIBLE_DEVICES"] == "GPU-00000000"


def test_what_is_mounted_is_what_gpu_share_mps_hands_out(directory: Path) -> None:
    one = held(directory, {"cdi"}, 200, serving=Mps("/p", mount_sources="/run/gpu-share/pipes"))
    assert [(mount["hostPath"], mount["containerPath"]) for mount in one.edits["mounts"]] == [
        ("/run/gpu-share/pipes/GPU-00000000", "/p/GPU-00000000"),
        ("/run/gpu-share/pipes/shm", "/dev/shm"),
    ]


def test_several_gpus_are_all_brought_by_nvidias_devices_or_none_is(directory: Path) -> None:
    both = held(directory, {"cdi"}, 2000, strategy="whole")
    assert both.others == tuple(THEIRS.values())
    some = held(directory, {"cdi"}, 2000, strategy="whole", names={"GPU-00000000": "nvidia.com/gpu=0"})
    assert some.others == ()
    assert environment(some)["NVIDIA_VISIBLE_DEVICES"] == "GPU-00000000,GPU-00000001"


def test_device_nodes_are_in_the_specification_where_they_are_asked_for(directory: Path) -> None:
    nodes = [one["path"] for one in held(directory, {"devices"}, 200).edits["deviceNodes"]]
    assert {"/dev/nvidiactl", "/dev/nvidia0"} <= set(nodes)
    assert "deviceNodes" not in held(directory, {"cdi"}, 200).edits


def test_a_third_is_what_the_device_plugin_calls_a_third(directory: Path) -> None:
    assert environment(held(directory, {"cdi"}, 333, vgpus=3))["GPU_SHARE_FRACTION"] == "0.3333"
