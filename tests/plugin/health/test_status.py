"""What `gpu-share plugin status` tells, over the files that it finds."""

import json
from pathlib import Path

import msgspec
import pytest

from plugin.health.state import (
    ApplicationFault,
    Fault,
    GpuHealth,
    NotRegistered,
    Recovery,
    Waiting,
    write_node_health,
)
from plugin.health.status import show
from plugin.mps.state import MpsGpu, MpsState, write_state
from plugin.state_files import boot_seconds
from tests.plugin.health.published import ago, daemons, healthy, node, status


def unhealthy() -> GpuHealth:
    """Make a GPU with two faults, as it is now: minutes pass while other tests run."""
    xid = Fault(
        source="xid",
        why="XID 79: fell off the bus",
        since=ago(minutes=2.5),
        comes_back="once the GPU is reset",
        xid=79,
    )
    lost = Fault(source="lost", why="the GPU is lost", since=ago(minutes=1.5), comes_back="once it answers again")
    return healthy(1, faults=(xid, lost), since=ago(minutes=2.5), model="H200 NVL")


def test_a_healthy_node_is_one_line_for_each_gpu_and_0(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0), healthy(1)))
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    head, first, second = ran.stdout.splitlines()
    assert head.startswith("GPUs: 2, none of them unhealthy; driver: 580.95.05; last updated ")
    for index, line in enumerate((first, second)):
        assert line.startswith(f"GPU {index}  GPU-{index}  H200  gpu-share.dev/vgpu  healthy  since 20")
        assert line.endswith(" UTC, for 3 h")


def test_an_unhealthy_gpu_says_each_reason_since_when_and_what_brings_it_back_and_1(tmp_path: Path) -> None:
    write_node_health(
        tmp_path, node(healthy(0), unhealthy(), skipped=("GPU 2 of 3 cannot be shared: it is in MIG mode",))
    )
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    head, first, second, *more = ran.stdout.splitlines()
    assert head.startswith("GPUs: 2, 1 of them unhealthy; ")
    assert first.startswith("GPU 0  GPU-0  H200      gpu-share.dev/vgpu  healthy    since ")
    assert second.startswith("GPU 1  GPU-1  H200 NVL  gpu-share.dev/vgpu  UNHEALTHY  since ")
    assert second.endswith(" UTC, for 2 min")
    assert more[0].startswith("  cause: XID 79: fell off the bus (since 20")
    assert more[0].endswith(" UTC, for 2 min)")
    assert more[1] == "         recovers once the GPU is reset"
    assert more[2].startswith("  cause: the GPU is lost (since 20")
    assert more[3] == "         recovers once it answers again"
    assert more[4:] == ["not shared: GPU 2 of 3 cannot be shared: it is in MIG mode"]


def test_the_last_fault_of_a_program_is_told_with_who_was_on_the_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ApplicationFault(xid=31, at=ago(days=2.5), tenants=("team-a/one/main", "team-b/two/main"))
    untold = ApplicationFault(xid=43, at=ago(seconds=1))
    write_node_health(tmp_path, node(healthy(0, application_fault=told), healthy(1, application_fault=untold)))
    assert show(tmp_path, output="text") == 0
    _, _, first, _, second = capsys.readouterr().out.splitlines()
    assert first.startswith("  last application fault: XID 31 at 20")
    assert first.endswith(", 2 d ago; on the GPU then: team-a/one/main, team-b/two/main")
    assert second.endswith("; on the GPU then: no known tenant")


def test_json_holds_the_same_as_data(tmp_path: Path) -> None:
    fault = ApplicationFault(xid=31, at=ago(days=2), tenants=("team-a/one/main",))
    hurt = msgspec.structs.replace(unhealthy(), application_fault=fault)
    ready = MpsGpu(state="ready", since=ago(hours=1), checked_seconds=boot_seconds())
    write_state(tmp_path, daemons(GPU_0=ready))
    skipped = ("GPU 2 of 3 cannot be shared",)
    write_node_health(tmp_path, node(healthy(0), hurt, skipped=skipped, handover="envvar"))
    ran = status(tmp_path, "-o", "json")
    assert (ran.returncode, ran.stderr) == (1, "")
    data = json.loads(ran.stdout)
    assert 0 <= data.pop("age_seconds") < 20
    first, second = data.pop("gpus")
    assert data == {
        "driver": "580.95.05",
        "waiting": None,
        "pid": 7,
        "skipped": ["GPU 2 of 3 cannot be shared"],
        "tenants_unknown": "",
        "handover": "envvar",
        "slices_not_published": "",
        "not_registered": [],
        "restart_needed": [],
        "not_taken": "",
        "fit_guard": None,
    }
    assert (first["uuid"], first["healthy"], first["faults"]) == ("GPU-0", True, [])
    assert first["mps_daemon"] == {"state": "ready", "since": ready.since, "fault": None}
    assert (second["index"], second["healthy"], second["since"]) == (1, False, hurt.since)
    assert second["faults"] == [msgspec.to_builtins(one) for one in hurt.faults]
    assert second["application_fault"] == {"xid": 31, "at": fault.at, "tenants": ["team-a/one/main"]}
    assert second["mps_daemon"] is None
    assert (first["occupancy"], second["occupancy"]) == (None, None)


def test_a_changed_cluster_file_is_told_with_what_needs_a_restart(tmp_path: Path) -> None:
    changes = ("vgpusPerInstance", "nodes")
    write_node_health(tmp_path, node(healthy(0), restart_needed=changes))
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == "restart needed: _cluster.yaml changed: vgpusPerInstance, nodes"
    assert json.loads(status(tmp_path, "-o", "json").stdout)["restart_needed"] == list(changes)


def test_a_resource_that_the_kubelet_does_not_know_is_told_with_what_to_do_and_1(tmp_path: Path) -> None:
    one = NotRegistered(resource="gpu-share.dev/vgpu", why="UNKNOWN: failed to dial\x1b: see its log")
    write_node_health(tmp_path, node(healthy(0), not_registered=(one,)))
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    said = "not registered: no pod gets any gpu-share.dev/vgpu: UNKNOWN: failed to dial\\x1b: see its log"
    assert ran.stdout.splitlines()[-1] == said
    ran = status(tmp_path, "-o", "json")
    assert (ran.returncode, json.loads(ran.stdout)["not_registered"]) == (1, [msgspec.to_builtins(one)])


def test_gpus_of_dra_that_the_scheduler_does_not_see_are_told_with_the_reason_and_1(tmp_path: Path) -> None:
    why = "the kubelet does not register the driver: no handler"
    write_node_health(tmp_path, node(healthy(0), healthy(1, resource=""), slices_not_published=why))
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    _, first, second, last = ran.stdout.splitlines()
    assert first.startswith("GPU 0  GPU-0  H200  gpu-share.dev/vgpu  healthy  ")
    assert second.startswith("GPU 1  GPU-1  H200  by DRA              healthy  ")
    assert last == f"slices not published: {why}"


def test_slices_that_would_be_empty_are_no_fault(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0), slices_not_published="waiting for the kubelet"))
    ran = status(tmp_path)
    assert (ran.returncode, len(ran.stdout.splitlines())) == (0, 2)


def test_a_number_that_cannot_be_taken_is_told_with_the_reason(tmp_path: Path) -> None:
    why = "vgpusPerGpu 10 -> 50: more than the 48 clients"
    write_node_health(tmp_path, node(healthy(0), not_taken=why))
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == f"not taken from _cluster.yaml: {why}"
    assert json.loads(status(tmp_path, "-o", "json").stdout)["not_taken"] == why


def test_a_plugin_that_waits_for_gpus_says_for_what_and_1_and_not_how_they_were(tmp_path: Path) -> None:
    waiting = Waiting(why="NVML: Driver Not Loaded: load the NVIDIA driver", since=ago(minutes=3.5))
    write_node_health(tmp_path, node(healthy(0), waiting=waiting))
    ran = status(tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    (line,) = ran.stdout.splitlines()
    assert line.startswith("no GPU is shared yet: NVML: Driver Not Loaded: load the NVIDIA driver (since 20")
    assert " for 3 min); last updated " in line
    data = json.loads(status(tmp_path, "-o", "json").stdout)
    assert (data["gpus"], data["waiting"]["why"]) == ([], waiting.why)


def test_a_plugin_that_waits_for_gpus_says_too_why_its_slices_are_not_published(tmp_path: Path) -> None:
    waiting = Waiting(why="no driver", since=ago(minutes=3.5))
    write_node_health(tmp_path, node(healthy(0), waiting=waiting, slices_not_published="403: forbidden"))
    assert status(tmp_path).stdout.splitlines()[1:] == ["slices not published: 403: forbidden"]
    assert json.loads(status(tmp_path, "-o", "json").stdout)["slices_not_published"] == "403: forbidden"


def test_the_last_recovery_is_told_with_who_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = Recovery(id="1", at=ago(hours=2.5), by="root (sudo by alice)", reason="reset by hand", cleared=("XID 63",))
    refused = Recovery(id="2", at=ago(hours=2.5), by="root", reason="why not", refused="it is healthy")
    write_node_health(tmp_path, node(healthy(0, recovery=done), healthy(1, recovery=refused)))
    assert show(tmp_path, output="text") == 0
    _, _, first, _, second = capsys.readouterr().out.splitlines()
    assert first.startswith("  last recovery: cleared: XID 63; at 20")
    assert first.endswith(", 2 h ago by root (sudo by alice): reset by hand")
    assert second.startswith("  last recovery: refused: it is healthy; at 20")


def test_where_the_driver_does_not_say_what_it_reserves_the_status_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_node_health(tmp_path, node(healthy(0, memory_mib=80000), healthy(1, memory_mib=79000, reserved_mib=1000)))
    assert show(tmp_path, output="text") == 0
    assert capsys.readouterr().out.splitlines()[2:3] == [
        "  memory: the driver does not say what it reserves, so shares are of all 80000 MiB"
    ]
    assert len(status(tmp_path).stdout.splitlines()) == 4


def test_a_time_that_has_not_come_yet_is_told_without_a_duration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_node_health(tmp_path, node(healthy(0, since=ago(hours=-2))))
    assert show(tmp_path, output="text") == 0
    assert capsys.readouterr().out.endswith(" UTC\n")


def test_hostile_texts_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b[2Jé\n" + "x" * 5000
    fault = Fault(source="lost", why=bad, since=bad, comes_back=bad)
    told = ApplicationFault(xid=-1, at="", tenants=(bad,))
    gpu = healthy(-5, uuid=bad, model=bad, resource=bad, since="9999-12-31T23:59:59-23:59", faults=(fault,))
    gpu = msgspec.structs.replace(gpu, application_fault=told)
    write_state(tmp_path, MpsState(boot_id=bad, gpus={bad: MpsGpu(state="failed", since=bad, checked_seconds=0)}))
    write_node_health(tmp_path, node(gpu, driver=bad, skipped=(bad,)))
    assert show(tmp_path, output="text") == 1
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert shown.replace("\n", "").isprintable()
    assert max(map(len, shown.splitlines())) < 4000
    assert show(tmp_path, output="json") == 1
    assert json.loads(capsys.readouterr().out)["driver"] == bad


def test_it_says_how_containers_get_their_gpu(tmp_path: Path) -> None:
    write_node_health(tmp_path, node(healthy(0), handover="cdi, with NVIDIA's own CDI device of each GPU"))
    assert status(tmp_path).stdout.splitlines()[-1] == "hand-over: cdi, with NVIDIA's own CDI device of each GPU"
