"""A node that allocates by DRA: the real plugin, a simulated kubelet and scheduler, and a simulated API server."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certs.issuer import issue_to_directory
from plugin.health.state import NodeHealth, read_node_health
from plugin.simulated.api_server import SLICES, Object, SimulatedApiServer, Store
from plugin.simulated.device_manager import Received
from plugin.simulated.dra_kubelet import SimulatedDraKubelet
from plugin.simulated.scheduler import SimulatedScheduler
from policies.contract import DRIVER
from tests.plugin.plugin_process import Plugin
from tests.plugin.waiting import wait_until

NODE = "node-1"
DEVICES = 54  # of two GPUs in tenths


@dataclass
class DraNode:
    """One node; `start` starts the plugin."""

    directory: Path
    store: Store
    port: int
    plugins: ExitStack
    kubelets: ExitStack
    policies: str = ""  # of _cluster.yaml
    allocation: str = "dra"  # of GPUs for which they say nothing
    before: tuple[str, ...] = ()  # what the plugin is run by
    mounts: Mapping[str, str] = field(default_factory=dict)  # by option, where the plugin has a directory
    kubelet: SimulatedDraKubelet = field(init=False)

    @property
    def scheduler(self) -> SimulatedScheduler:
        return SimulatedScheduler(self.store)

    @property
    def cdi_dir(self) -> Path:
        return self.directory / "cdi"

    def start(self, simulate: str = "2xH200", *, devices: int = DEVICES, **variables: str) -> Plugin:
        """Start the plugin, register it with a kubelet, and wait until all devices are published."""
        plugin = self.start_unregistered(simulate, **variables)
        self.register()
        wait_until(lambda: len(self.devices()) >= devices, timeout_seconds=30)
        return plugin

    def start_unregistered(self, simulate: str = "2xH200", **variables: str) -> Plugin:
        """Start the plugin; where *simulate* is empty, its GPUs are those of NVML."""
        (self.directory / "kubelet").mkdir(exist_ok=True)
        (self.directory / "policies").mkdir(exist_ok=True)
        (self.directory / "policies" / "_cluster.yaml").write_text(self.policies)
        places = {
            "--cdi-static-dir": "static",
            "--kubelet-dir": "kubelet",
            "--kubelet-plugins-dir": "p",
            "--kubelet-registrar-dir": "r",
            "--state-dir": "state",
            "--lib-dir": ".",
            "--cdi-dir": "cdi",
            "--service-account": "account",
            "--policies": "policies",
            "--pod-resources": "kubelet/pod-resources.sock",
            "--cgroups": "cgroups",
            **self.mounts,
        }
        options = [text for option, name in places.items() for text in (option, str(self.directory / name))]
        address = {"KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": str(self.port)}
        more = ("--node-name", NODE, "--allocation", self.allocation, *(("--simulate", simulate) if simulate else ()))
        plugin = Plugin(*options, *more, before=self.before, **address | variables)
        self.plugins.callback(plugin.close)
        return plugin

    def register(self) -> None:
        """Start a kubelet that finds the plugin."""
        self.kubelet = self.kubelets.enter_context(SimulatedDraKubelet(self.directory / "r", self.cdi_dir))
        self.kubelet.find(DRIVER)

    def devices(self) -> dict[str, Object]:
        slices = self.store.below(SLICES)
        return {one["name"]: one for part in slices for one in part["spec"].get("devices", ())}

    def schedule(self, pod: str, *resources: str) -> Object:
        claim = self.scheduler.schedule(pod, {f"c{number}": one for number, one in enumerate(resources)})
        assert claim is not None, "the pod is Pending"
        return claim

    def run(self, claim: Object) -> Received:
        """Prepare a claim of one container, and start the container."""
        ((_, devices),) = self.kubelet.prepare(claim).items()
        return self.kubelet.start_container(devices)

    def end(self, claim: Object) -> None:
        """End the containers of a claim, and free it."""
        self.kubelet.unprepare(claim)
        self.scheduler.release(claim)


@contextmanager
def dra_node(directory: Path, *, keeps: Callable[[Object], Object] = lambda spec: spec) -> Iterator[DraNode]:
    """Make a node in *directory*; *keeps* is what the API server keeps of a slice."""
    account = directory / "account"
    issue_to_directory(account, ["localhost"])
    (account / "token").write_text("token")
    store = Store(keeps=keeps)
    store.put(f"/api/v1/nodes/{NODE}", {"metadata": {"name": NODE}})
    server = SimulatedApiServer(store, certificate=account / "tls.crt", key=account / "tls.key")
    with server, ExitStack() as plugins, ExitStack() as kubelets:
        yield DraNode(directory, store, server.port, plugins, kubelets)


def gpu_of(received: Received) -> str:
    return received.environment["NVIDIA_VISIBLE_DEVICES"]


def share(milli: int) -> str:
    return f"gpu-share.dev/share-{milli}m"


def attributes(device: Mapping[str, Any]) -> dict[str, Any]:
    return {name: next(iter(value.values())) for name, value in device["attributes"].items()}


def health(node: DraNode) -> NodeHealth:
    """Say what the plugin tells of the node."""
    found = read_node_health(node.directory / "state")
    assert found is not None
    return found


def sizes(node: DraNode) -> set[str]:
    """Say which sizes pods can get; those of an earlier number are published, and tainted."""
    return {attributes(one)["size"] for one in node.devices().values() if "taints" not in one}
