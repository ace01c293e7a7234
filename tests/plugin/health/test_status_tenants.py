"""What `gpu-share plugin status` tells of who has which share, and of what is left."""

import json
from pathlib import Path

import msgspec
import pytest

from plugin.health.state import Fault, write_node_health
from plugin.health.status import show
from plugin.pod_resources.occupancy import GpuOccupancy, write_occupancy
from plugin.state_files import boot_seconds
from plugin.usage.record import GpuUse, ProcessesUse, write_use
from tests.plugin.health.published import ago, healthy, node, occupancy, occupant, occupied, status, taken, use

TENANT = occupant("resnet", 3, since=ago(hours=5.5))
OLD = occupant("bert", 4, namespace="team-b", container="serve")
SHARED = occupied(TENANT, OLD)


def said(directory: Path, shared: GpuOccupancy, *, unknown: str = "", seconds_ago: float = 0) -> None:
    write_occupancy(directory, occupancy(shared, unknown=unknown, looked_seconds=boot_seconds() - seconds_ago))


def test_a_gpu_says_what_is_left_of_it_and_who_has_the_rest(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    said(tmp_path, SHARED)
    _, _, left, first, second = status(tmp_path).stdout.splitlines()
    assert left == "  vGPUs: 7 of 10 granted, 3 free; largest share that fits: 0.3"
    assert first.startswith("  tenant: 0.3 team-a/resnet/main (since 20")
    assert first.endswith(", for 5 h)")
    assert second == "  tenant: 0.4 team-b/bert/serve"


def test_what_is_held_by_nobody_whom_the_kubelet_names_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    said(tmp_path, msgspec.structs.replace(SHARED, granted=10, free=0, largest_free=0))
    assert show(tmp_path, output="text") == 0
    assert "  of no tenant: 3, of init containers or pods from before a restart: " in capsys.readouterr().out


def test_what_nobody_has_is_told_too_while_vgpus_of_an_earlier_number_are_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    in_thousandths = msgspec.structs.replace(SHARED, vgpus_per_gpu=20, parts=1000, free=0, largest_free=0, occupants=())
    for granted, told in ((1000, True), (50, False)):  # less than a vGPU may be left of dividing
        said(tmp_path, msgspec.structs.replace(in_thousandths, granted=granted))
        assert show(tmp_path, output="text") == 0
        assert ("  of no tenant: " in capsys.readouterr().out) is told


def test_by_dra_the_parts_are_thousandths_and_what_is_hidden_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    one = msgspec.structs.replace(OLD, parts=333)
    by_dra = msgspec.structs.replace(
        SHARED,
        allocation="dra",
        vgpus_per_gpu=None,
        parts=1000,
        granted=333,
        hidden=1,
        free=666,
        largest_free=666,
        occupants=(one,),
    )
    said(tmp_path, by_dra)
    assert show(tmp_path, output="text") == 0
    *_, left, tenant = capsys.readouterr().out.splitlines()
    assert left == "  thousandths: 333 of 1000 granted, 666 free, 1 hidden; largest share that fits: 0.666"
    assert tenant == "  tenant: 0.333 team-b/bert/serve"


def test_nothing_fits_on_an_unhealthy_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = Fault(source="lost", why="the GPU is lost", since=ago(minutes=1), comes_back="once it answers")
    write_node_health(tmp_path, node(healthy(0, faults=(lost,))))
    said(tmp_path, SHARED)
    assert show(tmp_path, output="text") == 1
    assert "vGPUs: 7 of 10 granted, 0 free; largest share that fits: 0\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("unknown", "seconds_ago", "told"),
    [("the kubelet did not answer\x1b", 0, "the kubelet did not answer\\x1b"), ("", 65, "last known 1 min ago")],
)
def test_that_nobody_says_any_more_who_has_which_share_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unknown: str, seconds_ago: float, told: str
) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    said(tmp_path, SHARED, unknown=unknown, seconds_ago=seconds_ago)
    show(tmp_path, output="text")
    assert capsys.readouterr().out.endswith(f"tenants unknown: {told}\n")
    assert json.loads(status(tmp_path, "-o", "json").stdout)["tenants_unknown"]


def test_who_uses_a_gpu_without_a_share_is_told_with_what_to_do(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    all_named = msgspec.structs.replace(SHARED, all_named=True)
    write_occupancy(tmp_path, occupancy(all_named, asked_seconds=boot_seconds()))
    hog = taken(TENANT, pod="hog", processes=2, memory_bytes=3 * 2**30)
    write_use(tmp_path, use(GpuUse(outsiders=(hog,), of_node=ProcessesUse(processes=1))))
    told = status(tmp_path).stdout
    assert "  without a share: team-a/hog/main has 2 processes with 3.0 GiB: delete its pod, and where " in told
    assert "  without a share: the node itself has 1 process: nvidia-smi names them on the node: end them, " in told
    (gpu,) = json.loads(status(tmp_path, "-o", "json").stdout)["gpus"]
    assert [one["pod"] for one in gpu["outsiders"]] == ["hog"]
    assert gpu["of_node"] == {"processes": 1, "memory_bytes": None}
    write_use(tmp_path, use(GpuUse(outsiders=(hog,)), measured_seconds=0.0))
    assert "without a share" not in status(tmp_path).stdout


def test_what_nobody_has_counted_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    said(tmp_path, GpuOccupancy(strategy="mps", allocation="device-plugin", vgpus_per_gpu=10, parts=10))
    show(tmp_path, output="text")
    assert "granted" not in capsys.readouterr().out


def test_json_has_the_tenants_of_each_gpu(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0)))
    said(tmp_path, SHARED)
    (gpu,) = json.loads(status(tmp_path, "-o", "json").stdout)["gpus"]
    assert gpu["occupancy"] == json.loads(msgspec.json.encode(SHARED))
