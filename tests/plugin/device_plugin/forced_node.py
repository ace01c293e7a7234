"""A node whose pods are deleted by force: the kubelet forgets them at once, and their processes go on."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from tests.plugin.device_plugin.slow_node import SlowNode
from tests.plugin.device_plugin.walk import NAME

if TYPE_CHECKING:
    from tests.plugin.device_plugin.live_walk import Running


class ForcedNode(SlowNode):
    """The kubelet's file is in place before it goes on; `left` are the pods that it has forgotten, and that run."""

    def __init__(self, directory: Path, *, seed: int = 1) -> None:
        self.left: dict[str, Running] = {}
        super().__init__(directory, seed=seed)

    def delete_by_force(self, name: str) -> None:
        """Delete a pod: nobody but its processes knows of it any more."""
        self.left[name] = self._running[name]
        self.end(name)

    def end_processes(self, name: str) -> None:
        del self.left[name]

    def has_processes(self, pod_uid: str) -> bool:
        return pod_uid in self._running or pod_uid in self.left

    def write(self) -> None:
        super().write()
        while self._files:
            self._place()

    def random_step(self) -> None:
        """Take one random step, or delete a pod by force, or end one that was."""
        kind = self.random.choices(["step", "force", "over"], [80, 12 * bool(self._running), 8 * bool(self.left)])[0]
        if kind == "step":
            super().random_step()
            return
        if kind == "force":
            self.delete_by_force(self.random.choice([*self._running]))
        else:
            self.end_processes(self.random.choice([*self.left]))
        self.steps[kind] += 1
        self._now_seconds += self.random.choice([0, 0.1, 1])
        if self.random.random() < 0.5:
            self.look()
        self.check()

    def tell(self) -> None:
        self._tell()

    def free(self) -> list[int]:
        """Look often enough for all to be known, and count what is free of each GPU."""
        return sorted(self.after(2).values())

    def healthy(self) -> int:
        """Count what the kubelet takes for healthy."""
        return sum(one.healthy for one in self._manager.devices(NAME))

    def tenants(self) -> list[tuple[str, str, list[str]]]:
        """Name who is there, with the IDs of its vGPUs and their GPUs, as the node tells it."""
        return [
            (one.name, one.gpu_of(one.vgpus[0]), sorted(map(str, one.vgpus)))
            for one in self._held.located(self._tenants)()
        ]

    def _usable(self) -> dict[str, int]:
        held = self._manager.holders(NAME)
        used = {text for one in self.left.values() for part in one.received for text in part.device_ids}
        free = sum(one.healthy and one.id not in {*held, *used} for one in self._manager.devices(NAME))
        return {uuid: min(room, free) for uuid, room in self.room().items()}

    def _given(self, gpu: str) -> Fraction:
        return super()._given(gpu) + sum((one.part_of(gpu) for one in self.left.values()), Fraction())
