"""What a plugin takes of its policy files: at its start, while it runs, and where they are broken."""

import os
from pathlib import Path
from signal import SIGTERM

import pytest

from plugin.health.state import read_node_health
from plugin.pod_resources.occupancy import read_occupancy
from plugin.simulated.device_manager import Received, Request, UnexpectedAdmissionError
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id
from tests.plugin.plugin_process import Start
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
SPECIFICATION = "gpu-share_gpu-share.dev_vgpu.json"
FIRST = simulated_gpus("1xL4")[0].uuid
BY_DRA = "nodes: [{indexes: [0], offer: mps, allocation: dra}]"


def policies(directory: Path, **files: str) -> str:
    """Write policy files in the place of those in *directory*, each in one step."""
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / ".new").write_text(text)
        (directory / ".new").replace(directory / f"{name}.yaml")
    return str(directory)


def test_files_of_namespaces_cost_a_node_no_vgpu_and_are_not_read(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    """What is wrong with them is in the log of the webhook."""
    written = policies(tmp_path / "policies", _cluster="vgpusPerGpu: 20", _default="mode: x", Bad_Name="")
    os.mkfifo(Path(written) / "team.yaml")
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "1xL4", "--policies", written)
        kubelet.wait_for(NAME)
        assert kubelet.allocatable(NAME) == 20
    _, written_lines = plugin.ends(by=SIGTERM)
    assert "policy file broken" not in written_lines


def test_a_cluster_file_of_another_name_is_not_taken_for_none(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / "policies"
    directory.mkdir()
    (directory / "_cluster.yml").write_text("vgpusPerGpu: 20\n")
    ended, written = start("--simulate", "1xL4", "--policies", str(directory)).ends()
    assert ended == 2
    assert written.startswith(f"gpu-share plugin: {directory}/_cluster.yml: expected _cluster.yaml")


def test_a_twin_of_the_cluster_file_neither_stops_a_start_nor_freezes_the_good_one(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    options = options_of(directory, tmp_path)
    for twin in ("_cluster.yml", "_CLUSTER.yaml", "_cluster.YAML"):
        (tmp_path / "policies" / twin).write_text("vgpusPerGpu: 50\n")
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        start(*options)
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10)
        policies(tmp_path / "policies", _cluster="vgpusPerGpu: 20")
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 20)


def test_a_broken_cluster_file_is_one_line_with_file_line_and_problem(start: Start, tmp_path: Path) -> None:
    directory = policies(tmp_path / "policies", _cluster="\nvgpusPerGpu: 0", team="mode: x")
    ended, written = start("--simulate", "1xL4", "--policies", directory).ends()
    assert ended == 2
    assert written == (
        f"gpu-share plugin: {directory}/_cluster.yaml:2: vgpusPerGpu: expected a whole number from 1 to 100, got 0: "
        "write it like 10\n"
    )


def options_of(directory: Path, tmp_path: Path) -> tuple[str, ...]:
    """One GPU of ten vGPUs, by policies that can be changed, and a kubelet that says who holds what."""
    written = policies(tmp_path / "policies", _cluster="vgpusPerGpu: 10")
    return ("--simulate", "1xL4", "--policies", written, "--pod-resources", str(directory / "pods.sock"))


def tenants(state_dir: Path) -> set[tuple[str, int]]:
    """Say who has how many vGPUs, as `gpu-share plugin status` reads it."""
    written = read_occupancy(state_dir, boot_id=boot_id())
    gpus = written.gpus.values() if written else ()
    return {(one.pod, one.parts) for gpu in gpus for one in gpu.occupants}


def three_held(kubelet: SimulatedKubelet) -> Received:
    kubelet.wait_for(NAME)
    return kubelet.allocate(Request(pod="default/old", container="main", resource=NAME, count=3))


def test_another_number_of_vgpus_is_taken_while_it_runs_and_outlives_a_kill(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    options = options_of(directory, tmp_path)
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        plugin = start(*options)
        held = three_held(kubelet)
        policies(tmp_path / "policies", _cluster="vgpusPerGpu: 20")
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 17)  # 3 of 10, and 14 of 20
        plugin.process.kill()
        plugin.ends()
        start(*options).logged("starting")
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 17)
        rest = kubelet.allocate(Request(pod="default/rest", container="main", resource=NAME, count=14))
        assert not set(held.device_ids) & set(rest.device_ids)
        assert [one.environment["GPU_SHARE_FRACTION"] for one in (held, rest)] == ["0.3", "0.7"]
        kubelet.free("default/old")
        rest = kubelet.allocate(Request(pod="default/new", container="main", resource=NAME, count=3))
        assert rest.environment["GPU_SHARE_FRACTION"] == "0.15"


def test_a_change_that_is_taken_up_at_a_start_alone_ends_it_to_be_started_anew(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    options = options_of(directory, tmp_path)
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        plugin = start(*options)
        three_held(kubelet)
        policies(tmp_path / "policies", _cluster="resourceNames: {mps: example.com/vgpu}")
        told = plugin.logged("restart needed")
        assert told["changed"] == ["resourceNames.mps gpu-share.dev/vgpu -> example.com/vgpu"]
        assert plugin.ends()[0] == 0
        start(*options).logged("starting")
        assert kubelet.wait_for("example.com/vgpu") == 7  # 3 are held by the earlier name
        rest = kubelet.allocate(Request(pod="default/new", container="main", resource="example.com/vgpu", count=7))
        assert rest.environment["GPU_SHARE_FRACTION"] == "0.7"
        wait_until(lambda: tenants(tmp_path) == {("old", 3), ("new", 7)})


def test_a_change_by_which_no_gpu_could_be_allocated_is_not_taken_and_what_is_shared_goes_on(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    """No API server can be asked here, so nothing can be allocated by DRA."""
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        plugin = start(*options_of(directory, tmp_path))
        three_held(kubelet)
        policies(tmp_path / "policies", _cluster=f"vgpusPerGpu: 20\n{BY_DRA}")
        told = plugin.logged("not taken: nodes")
        assert "all GPUs: allocation: dra needs the API server" in told["reason"]
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 17)  # 3 of 10, and 14 of 20: what webhooks grant by
        rest = kubelet.allocate(Request(pod="default/new", container="main", resource=NAME, count=4))
        assert rest.environment["GPU_SHARE_FRACTION"] == "0.2"
        assert plugin.process.poll() is None


def test_another_way_of_handing_over_is_taken_while_it_runs_also_beside_what_is_not(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    """Webhooks admit by it at once: an envFrom beside limits that are variables would lift them."""
    options = options_of(directory, tmp_path)
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        plugin = start(*options)
        three_held(kubelet)
        policies(tmp_path / "policies", _cluster=f"handover: [cdi]\n{BY_DRA}")
        wait_until(lambda: not_taken(tmp_path).startswith("nodes: "))
        rest = kubelet.allocate(Request(pod="default/new", container="main", resource=NAME, count=2))
        assert rest.cdi_devices == (f"{NAME}={FIRST}-2of10",)
        assert "2of10" in (tmp_path / "cdi" / SPECIFICATION).read_text()
        policies(tmp_path / "policies", _cluster="handover: [envvar]")
        wait_until(lambda: (status := read_node_health(tmp_path)) is not None and status.handover == "envvar")
        last = kubelet.allocate(Request(pod="default/last", container="main", resource=NAME, count=1))
        assert not last.cdi_devices
        assert "2of10" in (tmp_path / "cdi" / SPECIFICATION).read_text(), "by which the container before starts again"
        assert plugin.process.poll() is None


def test_gpus_are_kept_back_while_webhooks_go_by_cdi_and_no_specification_can_be_written(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "run"
    in_the_way.touch()
    policies(tmp_path / "policies", _cluster="handover: [envvar]")
    options = ("--simulate", "1xL4", "--policies", str(tmp_path / "policies"), "--cdi-dir", str(in_the_way / "cdi"))
    with SimulatedKubelet(directory) as kubelet:
        plugin = start(*options)
        kubelet.wait_for(NAME)
        policies(tmp_path / "policies", _cluster="handover: [cdi]")
        wait_until(lambda: not_taken(tmp_path).startswith(f"handover envvar -> cdi: --cdi-dir {in_the_way}/cdi: "))
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 0)
        told = plugin.logged("GPU unhealthy")["why"]
        assert told == "webhooks admit pods by handover: [cdi], and this node still hands over by envvar"
        in_the_way.unlink()
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 10)
        got = kubelet.allocate(Request(pod="default/new", container="main", resource=NAME, count=2))
        assert got.cdi_devices == (f"{NAME}={FIRST}-2of10",)
        wait_until(lambda: not_taken(tmp_path) == "")


def test_what_is_one_gpu_by_a_number_that_is_not_taken_is_never_two_here(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    """MPS serves 60 clients on the T4, so the node stays at 35: pods that are granted 70 of 70 are granted one GPU."""
    simulated = tmp_path / "gpus.yaml"
    simulated.write_text("gpus: [{model: L4}, {model: L4}, {model: T4}]\n")
    options = ("--simulate", str(simulated), "--policies", str(tmp_path / "policies"), "--strategy", "mps")
    name, nodes = "gpu-share.dev/vgpu-timesliced", "nodes: [{model: '*L4*', offer: time-slicing}]"
    policies(tmp_path / "policies", _cluster=f"vgpusPerGpu: 35\n{nodes}")
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        start(*options, "--pod-resources", str(directory / "pods.sock"))
        kubelet.wait_for(name)
        policies(tmp_path / "policies", _cluster=f"vgpusPerGpu: 70\n{nodes}")
        wait_until(lambda: not_taken(tmp_path).startswith("vgpusPerGpu 35 -> 70: "))
        why = "70 vGPUs are more than a GPU of this node has, and pods are granted some of 70 by now"
        with pytest.raises(UnexpectedAdmissionError, match=why):
            kubelet.allocate(Request(pod="default/one", container="main", resource=name, count=70))
        policies(tmp_path / "policies", _cluster=f"vgpusPerGpu: 35\n{nodes}")
        wait_until(lambda: not_taken(tmp_path) == "")
        two = kubelet.allocate(Request(pod="default/two", container="main", resource=name, count=70))
        assert two.environment["NVIDIA_VISIBLE_DEVICES"].count("GPU-") == 2


def test_beside_a_change_that_is_not_taken_a_number_is_taken_only_where_webhooks_grant_by_it(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    """Of a resource that gets another name, pods that wait were granted by the number before, and no others come."""
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        start(*options_of(directory, tmp_path))
        three_held(kubelet)
        policies(tmp_path / "policies", _cluster=f"vgpusPerGpu: 5\nresourceNames: {{mps: example.com/vgpu}}\n{BY_DRA}")
        stays = f"no share of {NAME} is granted by it, so GPUs here stay divided by 10"
        wait_until(lambda: stays in not_taken(tmp_path))
        waited = kubelet.allocate(Request(pod="default/new", container="main", resource=NAME, count=2))
        assert waited.environment["GPU_SHARE_FRACTION"] == "0.2"


def test_a_number_that_is_not_valid_beside_the_nodes_of_before_ends_nothing(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    options = options_of(directory, tmp_path)
    policies(tmp_path / "policies", _cluster="vgpusPerGpu: 10\nnodes: [{node: 'other-*', offer: mps, allocation: dra}]")
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        plugin = start(*options)
        three_held(kubelet)
        policies(tmp_path / "policies", _cluster="vgpusPerGpu: 40\nnodes: [{node: 'other-*', offer: mps}]")
        kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 31)  # 3 of 10, and 28 of 40
        assert plugin.process.poll() is None


def not_taken(directory: Path) -> str:
    known = read_node_health(directory)
    return known.not_taken if known else ""
