"""What a plugin takes of its policy files: at its start, while it runs, and where they are broken."""

import os
from pathlib import Path
from signal import SIGTERM

from plugin.health.state import read_node_health
from plugin.pod_resources.occupancy import read_occupancy
from plugin.simulated.device_manager import Received, Request
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id
from tests.plugin.plugin_process import Start
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
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


def test_cdi_is_not_taken_where_a_start_could_write_no_specification_and_is_once_it_can(
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
        why = f"handover envvar -> cdi: a start would not share all GPUs: --cdi-dir {in_the_way}/cdi: "
        wait_until(lambda: not_taken(tmp_path).startswith(why))
        assert kubelet.allocatable(NAME) == 10
        in_the_way.unlink()
        assert plugin.ends()[0] == 0
        start(*options)
        kubelet.wait_for(NAME)
        assert (in_the_way / "cdi").is_dir()


def test_beside_a_change_that_is_not_taken_a_number_is_taken_only_where_webhooks_grant_by_it(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    """Of a resource that gets another name, pods that wait were granted by the number before, and no others come."""
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        start(*options_of(directory, tmp_path))
        three_held(kubelet)
        policies(tmp_path / "policies", _cluster=f"vgpusPerGpu: 5\nresourceNames: {{mps: example.com/vgpu}}\n{BY_DRA}")
        wait_until(lambda: f"{NAME} is not granted by it, so GPUs here stay divided by 10" in not_taken(tmp_path))
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
