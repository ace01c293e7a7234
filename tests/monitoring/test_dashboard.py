"""The dashboard over a real Prometheus, which scrapes a simulated node, a webhook and a certificate controller."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.issuer import issue_to_directory
from certs.metrics import LastPass
from certs.rotation import State
from plugin.simulated.device_manager import Request
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id, boot_seconds
from plugin.telemetry.server import TelemetrySettings
from plugin.telemetry.server import serve as serve_node
from plugin.usage.record import ContainerUse, GpuUse, NodeUse, write_use
from program.http_server import serve_beside
from tests.manifests.render import MANIFESTS
from tests.plugin.plugin_process import Plugin
from tests.plugin.waiting import wait_until
from tests.webhook import serving
from tests.webhook.serving import review_of

DASHBOARD = MANIFESTS / "components" / "monitoring" / "gpu-share.json"
PROMETHEUS = shutil.which("prometheus")
NAME = "gpu-share.dev/vgpu"
GPU = simulated_gpus("2xH200")[0].uuid


def panels() -> list[tuple[str, str]]:
    """List the queries of the dashboard with the titles of their panels, as for all nodes and namespaces."""
    found = json.loads(DASHBOARD.read_text())["panels"]
    return [
        (panel["title"], target["expr"].replace("$node", ".*").replace("$namespace", ".*"))
        for panel in found
        for target in panel.get("targets", ())
    ]


class Prometheus:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Any:
        url = f"{self._url}/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - of this machine
            return json.load(answer)["data"]

    def value(self, query: str) -> list[float]:
        result = self.ask("query", query=query)["result"]
        return [float(one["value"][1]) for one in result]

    def is_up(self, targets: int) -> bool:
        try:
            return self.value("sum(up)") == [targets]
        except OSError:
            return False


@contextmanager
def prometheus(directory: Path, addresses: list[str]) -> Iterator[Prometheus]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
    scraped = [address.removeprefix("http://") for address in addresses]
    job = {"job_name": "gpu-share", "honor_labels": True, "static_configs": [{"targets": scraped}]}
    settings = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
    (directory / "prometheus.yaml").write_text(yaml.safe_dump(settings))
    command = [str(PROMETHEUS), f"--config.file={directory}/prometheus.yaml", f"--storage.tsdb.path={directory}/data"]
    process = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield Prometheus(port)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def scraping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Give a Prometheus that has scraped all parts twice at least."""
    if PROMETHEUS is None:
        pytest.skip("there is no Prometheus here: apt-get install prometheus")
    directory = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        addresses = [
            *node(stack, directory),
            webhook(stack, directory, patch),
            certificates(stack, directory),
        ]
        running = stack.enter_context(prometheus(directory, addresses))
        wait_until(lambda: running.is_up(4), timeout_seconds=60)
        time.sleep(3)
        yield running


def node(stack: ExitStack, directory: Path) -> list[str]:
    """Start a plugin with two GPUs and two tenants, and answer what `gpu-share mps` would measure of them."""
    kubelet = stack.enter_context(SimulatedKubelet(directory, pod_resources=directory / "pods.sock"))
    state = directory / "state"
    options = {"kubelet-dir": directory, "state-dir": state, "cdi-dir": directory / "cdi", "node-name": "worker-1"}
    options |= {"cdi-static-dir": directory / "etc", "pod-resources": directory / "pods.sock"}
    options |= {"simulate": "2xH200", "metrics-bind": "127.0.0.1:0"}
    options |= {"fit-guard": "off"}  # both tenants on one GPU, and nothing hidden
    plugin = Plugin(*(f"--{name}={value}" for name, value in options.items()))
    stack.callback(plugin.close)
    address = str(plugin.logged("metrics served")["address"])
    kubelet.wait_for(NAME)
    time.sleep(6)  # the plugin has looked once, so that it knows since when the others are there
    kubelet.allocate(Request(pod="team-a/resnet", container="main", resource=NAME, count=3))
    kubelet.allocate(Request(pod="team-b/bert", container="serve", resource=NAME, count=4))
    resnet = ContainerUse(
        namespace="team-a", pod="resnet", container="main", processes=1, memory_bytes=10**9, sm_ratio=0.25
    )
    used = NodeUse(
        boot_id=boot_id(),
        measured_seconds=boot_seconds() + 30,
        gpus={GPU: GpuUse(containers=(resnet,), complete=True)},
    )
    write_use(state, used)
    settings = TelemetrySettings(metrics_bind=("127.0.0.1", 0))
    (server,) = serve_node(settings, part="mps", node="worker-1", state_dir=state)
    stack.callback(server.close)
    return [address, f"http://127.0.0.1:{server.port}"]


def webhook(stack: ExitStack, directory: Path, patch: pytest.MonkeyPatch) -> str:
    issue_to_directory(directory / "certificates", dns_names=("localhost",))
    (directory / "policies").mkdir()
    (directory / "policies" / "_default.yaml").write_text('share: {maximum: "0.5"}\n')
    patch.setenv("GPU_SHARE_METRICS_BIND", "127.0.0.1:0")
    server = serving.start(directory / "policies", directory / "certificates", directory / "log")
    stack.callback(server.interrupt)
    with server.caller() as caller:
        assert caller.allowed(review_of())
        assert not caller.allowed(review_of("0.9"))
    return str(server.lines("metrics served")[0]["address"])


def certificates(stack: ExitStack, directory: Path) -> str:
    last = LastPass()
    pem = {name: (directory / "certificates" / name).read_bytes() for name in ("ca.crt", "tls.crt")}
    state = State(ca={"ca.crt": pem["ca.crt"]}, annotations={}, serving={"tls.crt": pem["tls.crt"]}, bundle=None)
    last.note(state, datetime.now(UTC))
    server = serve_beside(("127.0.0.1", 0), {"/metrics": lambda _query: last.answer()}, what="metrics")
    assert server is not None
    stack.callback(server.close)
    return f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize(("title", "query"), panels())
def test_every_query_of_the_dashboard_returns_data(scraping: Prometheus, title: str, query: str) -> None:
    wait_until(lambda: bool(scraping.value(query)), timeout_seconds=30)
    assert title


def variables() -> list[tuple[str, str]]:
    """List what the choices at the top of the dashboard are asked from: metric and label."""
    listed = json.loads(DASHBOARD.read_text())["templating"]["list"]
    queries = [one["query"]["query"] for one in listed if one["type"] == "query"]
    return [
        (found[1], found[2]) for query in queries if (found := re.fullmatch(r"label_values\((\w+), (\w+)\)", query))
    ]


@pytest.mark.parametrize(("metric", "label"), variables())
def test_every_choice_of_the_dashboard_has_values(scraping: Prometheus, metric: str, label: str) -> None:
    chosen = {"node": ["worker-1"], "namespace": ["team-a", "team-b"]}
    wait_until(
        lambda: scraping.ask(f"label/{label}/values", **{"match[]": metric}) == chosen[label], timeout_seconds=30
    )


def test_what_the_queries_return_is_what_the_node_has(scraping: Prometheus) -> None:
    queries = dict(panels())
    wait_until(lambda: scraping.value(queries["Granted"]) == [0.35], timeout_seconds=30)
    assert scraping.value(queries["GPUs"]) == [2]
    assert scraping.value(queries["Unhealthy GPUs"]) == [0]
    assert scraping.value(queries["Largest share that fits"]) == [1]
    assert scraping.value(queries["SM utilisation"]) == [0.25]
    assert sorted(scraping.value(queries["Granted by namespace"])) == [0.3, 0.4]


def test_the_labels_of_a_sample_are_those_of_the_tenant(scraping: Prometheus) -> None:
    (found,) = scraping.ask("query", query='gpu_share_memory_used_bytes{pod="resnet"}')["result"]
    assert {name: found["metric"][name] for name in ("namespace", "container", "node", "gpu", "gpu_uuid")} == {
        "namespace": "team-a",
        "container": "main",
        "node": "worker-1",
        "gpu": "0",
        "gpu_uuid": GPU,
    }
