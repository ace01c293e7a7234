"""A vGPU in the kubelet's eyes, and who follows all of a resource: one stream of a kubelet."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugin.device_plugin.devices import Devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One vGPU in the kubelet's eyes."""

    id: str
    gpu_uuid: str
    numa_node: int | None
    healthy: bool = True


class Subscription:
    """One follower of the devices; iterate over it, close it from any thread."""

    def __init__(self, devices: "Devices") -> None:
        self._of = devices
        self.seen: tuple[Device, ...] | None = None
        self.told: tuple[Device, ...] | None = None  # seen, and asked for more: gRPC does once it has sent it
        self.closed = False

    def __iter__(self) -> Iterator[tuple[Device, ...]]:
        """Yield all devices now, and all of them again after each change, until closed."""
        while (state := self._of.next_state(self)) is not None:
            self.seen = state
            yield state

    def close(self) -> None:
        """End the iteration."""
        self._of.close(self)
