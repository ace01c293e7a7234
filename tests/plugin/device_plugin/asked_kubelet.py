"""A kubelet that says who holds what, and the holdings that ask it."""

from pathlib import Path

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.holdings import Holdings
from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.tenants import Tenant

A, B, C = "GPU-1::0", "GPU-1::1", "GPU-2::0"


def nothing() -> None:
    pass


class Kubelet:
    """What a kubelet says, and the socket it says it on."""

    def __init__(self, directory: Path, *, keeps: bool = False) -> None:
        self.socket = directory / "kubelet.sock"
        self.socket.touch()
        self.says: dict[str, tuple[str, ...]] | None = {}
        self.now = 100.0
        self.during = nothing  # what happens while it is asked
        self._keeps = keeps
        self.start_plugin()

    def start_plugin(self) -> None:
        """Start a plugin, that knows of the one before what is in the file."""
        directory = self.socket.parent
        checkpoint = Checkpoint(vgpus_per_gpu=10, state_dir=directory, boot_id="this") if self._keeps else None
        self.holdings = Holdings(self.read, kubelet=self.socket, checkpoint=checkpoint, clock=lambda: self.now)

    def read(self) -> tuple[Tenant, ...]:
        if self.says is None:
            raise TenantsError("the kubelet did not list pod resources")
        said = tuple(self._tenant(name, ids) for name, ids in self.says.items())
        self.during()
        return said

    def restart(self) -> None:
        self.socket.unlink()
        self.socket.with_suffix(".new").touch()
        self.socket.with_suffix(".new").replace(self.socket)

    def after(self, seconds: float) -> dict[str, str | None]:
        """Ask after a while, and give who holds what."""
        self.now += seconds
        self.holdings.refresh()
        return self.held()

    def held(self) -> dict[str, str | None]:
        return {text: holder.container for text, holder in self.holdings.held().items()}

    @staticmethod
    def _tenant(name: str, ids: tuple[str, ...]) -> Tenant:
        namespace, pod, container = name.split("/")
        vgpus = tuple(vgpu for text in ids if (vgpu := VGpuId.parse(text)))
        return Tenant(namespace=namespace, pod=pod, container=container, vgpus=vgpus)
