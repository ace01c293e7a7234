"""The plugin as a process of its own, as a scraper and the API server's proxy see it."""

import json
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plugin.gpus.nvml import load_nvml
from plugin.simulated.device_manager import Request
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from policies.node_state import NodeState, Toolkit, read
from tests.plugin.health.published import status
from tests.plugin.nvml_library import Script, build
from tests.plugin.plugin_process import Plugin, Start
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
UID = "3f1c7f6e-0000-4000-8000-000000000001"
FIRST, SECOND = (gpu.uuid for gpu in simulated_gpus("2xH200"))
BINDS = ("--metrics-bind", "127.0.0.1:0", "--state-bind", "127.0.0.1:0")


def address(plugin: Plugin, what: str) -> str:
    return str(plugin.logged(f"{what} served")["address"])


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - an address of this machine
        content: bytes = answer.read()
        return content


def samples(address: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Read the metrics, by name."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(get(f"{address}/metrics").decode()):
        for one in family.samples:
            found.setdefault(one.name, []).append((one.labels, one.value))
    return found


def state(address: str, uid: str = UID) -> NodeState:
    return read(get(f"{address}/state?pod={uid}"))


def test_a_node_tells_its_gpus_and_tenants_as_metrics_and_as_one_document(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    pod_resources = directory / "pods.sock"
    with SimulatedKubelet(directory, pod_resources=pod_resources) as kubelet:
        plugin = start(
            *("--simulate", "2xH200", "--node-name", "worker-1", "--pod-resources", str(pod_resources)),
            *("--pod-uid", UID, *BINDS, "--fit-guard", "off"),  # two pods on one GPU, while another one is empty
        )
        metrics, document = address(plugin, "metrics"), address(plugin, "state")
        kubelet.wait_for(NAME)
        wait_until(lambda: not state(document).tenants_unknown)
        kubelet.allocate(Request(pod="team-a/resnet", container="main", resource=NAME, count=3))
        kubelet.allocate(Request(pod="team-b/bert", container="serve", resource=NAME, count=4))
        wait_until(lambda: len(state(document).gpus[0].tenants) == 2, timeout_seconds=10)
        now = state(document)
        first, second = now.gpus
        assert [now.node, now.part, now.tenants_unknown, now.waiting] == ["worker-1", "plugin", "", ""]
        assert (first.healthy, first.strategy, first.allocation, first.resource) == (True, "mps", "device-plugin", NAME)
        assert (first.parts, first.granted, first.largest_free) == (10, 7, first.free)
        assert (first.free, first.hidden) == (3, 0)
        assert (second.granted, second.free, second.largest_free, len(second.tenants)) == (0, 10, 10, 0)
        assert [(one.name, one.parts, one.use) for one in first.tenants] == [
            ("team-a/resnet/main", 3, None),
            ("team-b/bert/serve", 4, None),
        ]
        assert all(one.since is not None for one in first.tenants)
        told = samples(metrics)
        of_first = {"node": "worker-1", "gpu": "0", "gpu_uuid": FIRST}
        of_second = {"node": "worker-1", "gpu": "1", "gpu_uuid": SECOND}
        assert told["gpu_share_gpu_granted_ratio"] == [(of_first, 0.7), (of_second, 0.0)]
        assert (of_second, 1.0) in told["gpu_share_gpu_free_ratio"]
        assert told["gpu_share_gpu_healthy"] == [(of_first, 1), (of_second, 1)]
        resnet = of_first | {"namespace": "team-a", "pod": "resnet", "container": "main"}
        assert told["gpu_share_granted_ratio"][0] == (resnet, 0.3)
        memory_mib = simulated_gpus("1xH200")[0].memory_bytes // 2**20 - 128  # of the MPS server
        assert told["gpu_share_memory_limit_bytes"][0] == (resnet, float(memory_mib * 3 // 10 * 2**20))
        assert told["gpu_share_thread_limit_ratio"][0] == (resnet, 0.3)
        assert told["gpu_share_granted_timestamp_seconds"][0][1] == pytest.approx(time.time(), abs=20)
        kubelet.free("team-a/resnet")
        wait_until(lambda: state(document).gpus[0].granted == 4, timeout_seconds=10)
        told_on_node = status(tmp_path).stdout
        assert "  vGPUs: 4 of 10 granted, " in told_on_node
        assert "  tenant: 0.4 team-b/bert/serve (since " in told_on_node
        assert plugin.ends(by=signal.SIGTERM)[0] == 0


def test_a_node_that_does_not_take_the_clusters_policy_tells_so_until_it_does(
    start: Start, directory: Path, tmp_path: Path
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "_cluster.yaml").write_text("vgpusPerGpu: 10\n")
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "1xH200", "--node-name", "worker-1", "--policies", str(policies), *BINDS)
        metrics = address(plugin, "metrics")
        kubelet.wait_for(NAME)

        def taken() -> list[tuple[dict[str, str], float]]:
            return samples(metrics)["gpu_share_cluster_policy_taken"]

        assert taken() == [({"node": "worker-1"}, 1)]
        # No API server can be asked here, so nothing can be allocated by DRA.
        by_dra = "nodes: [{indexes: [0], offer: mps, allocation: dra}]\n"
        (policies / "_cluster.yaml").write_text(by_dra)
        wait_until(lambda: taken() == [({"node": "worker-1"}, 0)])
        (policies / "_cluster.yaml").write_text("vgpusPerGpu: 20\n")
        wait_until(lambda: taken() == [({"node": "worker-1"}, 1)])
        (policies / "_cluster.yaml").write_text("vgpusPerGpu: many\n")
        wait_until(lambda: taken() == [({"node": "worker-1"}, 0)])
        assert f"not taken from _cluster.yaml: {policies}/_cluster.yaml:1: vgpusPerGpu: " in status(tmp_path).stdout
        (policies / "_cluster.yaml").write_text("vgpusPerGpu: 20 # again\n")
        wait_until(lambda: taken() == [({"node": "worker-1"}, 1)])
        assert plugin.process.poll() is None


def test_a_node_tells_how_many_gpus_it_leaves_out(start: Start, directory: Path, tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.say("pascal 0")
    library = str(build(tmp_path).parent)
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--node-name=worker-1", *BINDS, LD_LIBRARY_PATH=library, **script.environment)
        kubelet.wait_until(lambda: kubelet.capacity(NAME) == 10)
        told = samples(address(plugin, "metrics"))
        assert told["gpu_share_gpus_left_out"] == [({"node": "worker-1"}, 1)]
        assert [labels["gpu"] for labels, _ in told["gpu_share_gpu_info"]] == ["1"]


@pytest.mark.parametrize("path", ["/state", "/state?pod=", "/state?pod=other", f"/state?x=1&pod={UID}", "/state?%00"])
def test_the_state_is_told_to_those_alone_who_know_the_pod(start: Start, path: str) -> None:
    plugin = start("--simulate", "1xH200", "--pod-uid", UID, *BINDS)
    document = address(plugin, "state")
    with pytest.raises(urllib.error.HTTPError) as rejected:
        get(f"{document}{path}")
    with rejected.value as error:
        assert error.code == 403
        assert UID not in error.read().decode()


def test_each_address_answers_one_path_alone(start: Start) -> None:
    plugin = start("--simulate", "1xH200", "--pod-uid", UID, *BINDS)
    metrics, document = address(plugin, "metrics"), address(plugin, "state")
    for url in (f"{metrics}/state?pod={UID}", f"{document}/metrics"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(url)


def test_a_kubelet_that_does_not_say_who_holds_what_leaves_figures_out_and_says_why(
    start: Start, directory: Path
) -> None:
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--simulate", "1xH200", "--pod-resources", str(directory / "none.sock"), *BINDS)
        metrics, document = address(plugin, "metrics"), address(plugin, "state")
        kubelet.wait_for(NAME)
        wait_until(lambda: "none.sock" in state(document, "").tenants_unknown)
        told = samples(metrics)
        (gpu,) = state(document, "").gpus
        assert (gpu.parts, gpu.granted, gpu.free, gpu.largest_free) == (10, None, None, None)
        assert [value for _, value in told["gpu_share_tenants_known"]] == [0]
        assert "gpu_share_gpu_free_ratio" not in told
        assert "gpu_share_gpu_granted_ratio" not in told
        assert told["gpu_share_gpu_vgpus"][0][1] == 10


def test_a_kubelet_that_does_not_list_the_plugins_own_pod_has_not_said_who_holds_what(
    start: Start, directory: Path
) -> None:
    with SimulatedKubelet(directory, pod_resources=directory / "pods.sock") as kubelet:
        plugin = start(
            *("--simulate", "1xH200", "--pod-resources", str(directory / "pods.sock")),
            *("--pod-name", "gpu-share-plugin-x7k2p", *BINDS),
        )
        document = address(plugin, "state")
        kubelet.wait_for(NAME)
        kubelet.allocate(Request(pod="team-a/resnet", container="main", resource=NAME, count=3))
        wait_until(lambda: "does not list this pod, gpu-share-plugin-x7k2p" in state(document, "").tenants_unknown)
        (gpu,) = state(document, "").gpus
        assert (gpu.granted, gpu.tenants) == (None, ())


def test_a_node_that_waits_for_gpus_answers_and_says_for_what(start: Start, tmp_path: Path) -> None:
    load_nvml()
    plugin = start("--wait-for-gpus", *BINDS, LD_LIBRARY_PATH=str(build(tmp_path).parent), FAKE_NVML="uninitialized")
    document = address(plugin, "state")
    wait_until(lambda: "Driver Not Loaded" in state(document, "").waiting)
    assert state(document, "").gpus == ()


def test_a_hanging_nvml_delays_no_answer(start: Start, directory: Path, tmp_path: Path) -> None:
    library, script = build(tmp_path), Script(tmp_path)
    environment = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML": "healthy", **script.environment}
    with SimulatedKubelet(directory) as kubelet:
        plugin = start("--strategy", "time-slicing", *BINDS, **environment)
        metrics, document = address(plugin, "metrics"), address(plugin, "state")
        kubelet.wait_for("gpu-share.dev/vgpu-timesliced")
        script.say("hang")
        time.sleep(6)  # the plugin looks at the GPUs every 5
        told, now = samples(metrics), state(document, "")
        assert told["gpu_share_gpu_healthy"]
        assert now.gpus
        script.take_back("hang")


def test_the_answer_is_json_that_any_reader_takes(start: Start) -> None:
    plugin = start("--simulate", "1xH200", *BINDS)
    document: dict[str, Any] = json.loads(get(f"{address(plugin, 'state')}/state"))
    assert document["version"] == 1


@pytest.mark.parametrize("bind", ["9406", "localhost:", ":9406", "1.2.3.4:70000", "a:b", f"a:{'0' * 5000}"])
def test_an_address_that_is_none_is_said_in_one_line(start: Start, bind: str) -> None:
    code, written = start("--simulate", "1xH200", "--metrics-bind", bind).ends()
    assert code == 2
    assert written.count("\n") == 1
    assert "expected HOST:PORT" in written


def test_compute_modes_and_the_settings_of_the_toolkit_are_told_and_followed(start: Start, tmp_path: Path) -> None:
    library, script = build(tmp_path), Script(tmp_path)
    script.say("compute_mode 0 3", "compute_mode 1 99")
    plugin = start("--pod-uid", UID, *BINDS, LD_LIBRARY_PATH=str(library.parent), **script.environment)
    document = address(plugin, "state")
    wait_until(lambda: [one.compute_mode for one in state(document).gpus] == ["exclusive-process", ""])
    assert state(document).toolkit == Toolkit(variable_needed=True)
    script.take_back("compute_mode 0 3")
    (tmp_path / "config.toml").write_text("accept-nvidia-visible-devices-envvar-when-unprivileged = false")
    wait_until(lambda: state(document).gpus[0].compute_mode == "default", timeout_seconds=15)
    assert state(document).toolkit == Toolkit(accepts_variable=False, variable_needed=True)
