"""A part of a node that follows `_cluster.yaml`, and what it has taken up of it."""

from collections.abc import Collection
from pathlib import Path

from plugin.errors import HandoverError, HoldingsError
from plugin.restart import ClusterChanges, RestartNeeded
from policies.cluster import Cluster
from policies.contract import Handover
from policies.reading.store import PolicyStore


class Node:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.has("")
        cluster = PolicyStore(directory).current.cluster
        self.divided_by: list[int] = []
        self.restarts = 0
        self.number = cluster.vgpus_per_gpu
        self.loses = False  # GPUs would not be shared by what has changed
        self.cannot = ""  # why GPUs cannot be divided by another number
        self.handover: Collection[Handover] = cluster.handover
        self.handed_over_by: list[set[str]] = []
        self.beside: list[int] = []  # the number of each file that was taken as far as it can be
        self.changes = ClusterChanges(directory, RestartNeeded(cluster, node_name="gpu-1", hands_over=True), self)

    @property
    def vgpus_per_gpu(self) -> int:
        return self.number

    def divide_by(self, vgpus_per_gpu: int) -> None:
        if self.cannot:
            raise HoldingsError(self.cannot)
        self.divided_by.append(vgpus_per_gpu)
        self.number = vgpus_per_gpu

    def hand_over_by(self, ways: Collection[Handover]) -> None:
        if self.cannot:
            raise HandoverError(self.cannot)
        self.handed_over_by.append({*ways})
        self.handover = ways

    def lost_by(self, newest: Cluster) -> str:
        return f"{newest.vgpus_per_gpu} are too many" if self.loses else ""

    def stays_by(self, newest: Cluster) -> str:  # noqa: ARG002 - as the plugin has it
        return ""

    def go_on_beside(self, newest: Cluster) -> None:
        self.beside.append(newest.vgpus_per_gpu)

    def restart(self) -> None:
        self.restarts += 1

    def look(self) -> tuple[str, ...]:
        """Say what needs a restart."""
        needs_restart, not_taken = self.changes.look()
        assert not not_taken
        return needs_restart

    def has(self, text: str) -> None:
        new = self.directory / ".new"
        new.write_text(text)
        new.replace(self.directory / "_cluster.yaml")
