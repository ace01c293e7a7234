"""`gpu-share mps` and policy files that are broken, or changed while it runs."""

import signal
from itertools import count
from pathlib import Path

from plugin.mps.state import STATE_FILE
from plugin.shares.parts_file import FILE
from tests.plugin.mps.bench import A, B, Bench, Start
from tests.plugin.mps.isolated import needs_mounts
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until


@needs_mounts
def test_policies_that_are_broken_at_its_start_cost_no_gpu_and_lower_no_ceiling(bench: Bench, start: Start) -> None:
    bench.says("_default", 'share: {maximum: "0.2"}\n')
    bench.says("team", "nonsense: 1\n")
    with kubelet(bench.root / "kubelet"):
        running = start()
        bench.is_now("ready", A, B)
        wait_until(lambda: "set_default_active_thread_percentage 100" in bench.standin.commands(gpu=A))
        bench.says("team", 'share: {maximum: "0.4"}\n')
        wait_until(lambda: "set_default_active_thread_percentage 40" in bench.standin.commands(gpu=A))
        bench.says("team", "nonsense: 1\n")
        looks = len(bench.standin.commands(gpu=A))
        wait_until(lambda: len(bench.standin.commands(gpu=A)) > looks + 8)
        _, log, other = running.ends(by=signal.SIGTERM)
    assert other == ""
    assert [line["field"] for line in log if line["message"] == "policy file broken"] == ["nonsense"] * 2
    later = bench.standin.commands(gpu=A)[looks:]
    assert not any(one.startswith("set_default_active_thread_percentage") for one in later)


@needs_mounts
def test_a_broken_cluster_file_at_its_start_is_one_line_and_2(bench: Bench, start: Start) -> None:
    bench.cluster("vgpusPerGpu: 0\n")
    code, log, other = start().ends()
    assert (code, log) == (2, [])
    assert other.startswith(f"gpu-share mps: {bench.policies}/_cluster.yaml:2: vgpusPerGpu: ")
    assert "\n" not in other


@needs_mounts
def test_a_cluster_file_of_a_newer_version_does_not_keep_it_from_starting_again(bench: Bench, start: Start) -> None:
    bench.cluster("nodes: [{indexes: [1], offer: time-slicing}]\n")
    running = start()
    bench.is_now("ready", A)
    bench.cluster("ofTheNextVersion: true\n")
    running.ends(by=signal.SIGKILL)
    (bench.state_dir / STATE_FILE).unlink()
    running = start()
    bench.is_now("ready", A)
    assert bench.mode(B) == 0
    _, log, other = running.ends(by=signal.SIGTERM)
    (said,) = [line for line in log if line["message"] == "policy file broken"]
    assert (said["field"], other) == ("ofTheNextVersion", "")
    assert said["effect"] == "the last good one stays in force"
    (said,) = [line for line in log if line["message"].startswith("started by the last good _cluster.yaml")]
    assert "ofTheNextVersion" in said["reason"]


@needs_mounts
def test_a_twin_of_the_cluster_file_is_told_and_neither_stops_a_start_nor_freezes_the_good_one(
    bench: Bench, start: Start
) -> None:
    for twin in ("_cluster.yml", "_CLUSTER.yaml", "_default.yml"):
        (bench.policies / twin).write_text("")
    running = start()
    bench.is_now("ready", A, B)
    bench.cluster("nodes: [{node: '*', indexes: [7], offer: whole}]\n")
    looks = len(bench.standin.commands())
    wait_until(lambda: len(bench.standin.commands()) > looks + 8)
    _, log, _ = running.ends(by=signal.SIGTERM)
    assert [line["changed"] for line in log if line["message"] == "restart needed"] == [["nodes"]]
    told = {
        Path(line["file"]).name: (line["level"], line["effect"])
        for line in log
        if line["message"] == "policy file broken"
    }
    assert told == {
        "_cluster.yml": ("warning", "no policy is affected"),
        "_CLUSTER.yaml": ("warning", "no policy is affected"),
        "_default.yml": ("error", "ceilings count the last good policy, or a whole GPU where none is known"),
    }


@needs_mounts
def test_a_changed_cluster_file_is_said_to_need_a_restart_once(bench: Bench, start: Start) -> None:
    running = start()
    bench.is_now("ready", A, B)
    bench.cluster("vgpusPerGpu: 20\nhandover: [cdi]\nnodes: [{node: '*', indexes: [7], offer: whole}]\n")
    looks = len(bench.standin.commands())
    wait_until(lambda: len(bench.standin.commands()) > looks + 8)
    _, log, _ = running.ends(by=signal.SIGTERM)
    told = [line for line in log if line["message"] == "restart needed"]
    assert [line["changed"] for line in told] == [["nodes"]]  # the number it takes while it runs


@needs_mounts
def test_one_that_waits_for_gpus_ends_to_start_anew_when_the_cluster_file_changes(bench: Bench, start: Start) -> None:
    bench.has()
    running = start("wait")
    numbers = count()

    def ends_after_a_change() -> bool:  # the first may come before it has read the file
        bench.cluster(f"nodes: [{{node: '*', indexes: [{next(numbers)}], offer: whole}}]\n")
        return running.process.poll() is not None

    wait_until(ends_after_a_change, timeout_seconds=20)
    code, log, other = running.ends()
    assert (code, other) == (0, "")
    assert {tuple(line["changed"]) for line in log if line["message"] == "restart needed"} == {("nodes",)}


@needs_mounts
def test_the_ceiling_follows_the_policies_and_what_tenants_hold(bench: Bench, start: Start) -> None:
    bench.says("_default", 'share: {maximum: "0.2"}\n')
    with kubelet(bench.root / "kubelet", held("team/a", A, vgpus=5)) as tenants:
        start()
        wait_until(lambda: "set_default_active_thread_percentage 50" in bench.standin.commands(gpu=A))
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=B))
        tenants.clear()
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=A))
        bench.says("_default", 'share: {maximum: "0.7"}\n')
        wait_until(lambda: "set_default_active_thread_percentage 70" in bench.standin.commands(gpu=A))


@needs_mounts
def test_the_ceiling_of_a_gpu_that_gets_a_name_is_that_of_whoever_may_ask_for_it_now(
    bench: Bench, start: Start
) -> None:
    bench.says("_default", 'share: {maximum: "0.2"}\n')
    with kubelet(bench.root / "kubelet"):
        start()
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=A))
        bench.says("team", 'share: {maximum: "0.7"}\ndevices: [big]\n')
        bench.cluster("nodes: [{indexes: [0], device: big}]\n")
        wait_until(lambda: "set_default_active_thread_percentage 70" in bench.standin.commands(gpu=A))


@needs_mounts
def test_the_ceiling_is_not_below_what_an_init_container_holds(bench: Bench, start: Start) -> None:
    bench.says("_default", 'share: {maximum: "0.7"}\n')
    bench.holds(A, vgpus=5, named=False)
    with kubelet(bench.root / "kubelet"):
        start()
        wait_until(lambda: "set_default_active_thread_percentage 70" in bench.standin.commands(gpu=A))
        bench.says("_default", 'share: {maximum: "0.2"}\n')
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=B))
        wait_until(lambda: "set_default_active_thread_percentage 50" in bench.standin.commands(gpu=A))
        (bench.state_dir / FILE).unlink()
        wait_until(lambda: "set_default_active_thread_percentage 20" in bench.standin.commands(gpu=A))


@needs_mounts
def test_policies_that_break_while_it_runs_are_said_once_and_change_nothing(bench: Bench, start: Start) -> None:
    running = start()
    bench.is_now("ready", A, B)
    bench.says("_default", "nonsense: 1\n")
    looks = len(bench.standin.commands())
    wait_until(lambda: len(bench.standin.commands()) > looks + 8)
    assert bench.faults(A, B) == [None, None]
    _, log, _ = running.ends(by=signal.SIGINT)
    (said,) = [line for line in log if line["message"] == "policy file broken"]
    assert (said["file"], said["line"], said["field"]) == (f"{bench.policies}/_default.yaml", 1, "nonsense")
