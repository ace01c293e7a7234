"""What becomes of a changed `_cluster.yaml`: the plugin takes it, restarts for it, or leaves it and keeps its GPUs."""

import os
import signal
from collections.abc import Collection, Mapping

from plugin.allocators import Allocators, DraPlaces, asks_for_dra
from plugin.errors import DraError
from plugin.grid_checks import dividing, lost_at_a_start
from plugin.health.inventory import GpuInventory
from plugin.restart import ClusterChanges, RestartNeeded, StartChanges
from plugin.shared_node import SharedNode
from policies.cluster import Cluster
from policies.contract import Handover


class _SharingNode:
    """The plugin while it shares GPUs: what it can do by another `_cluster.yaml`, and what that would cost."""

    def __init__(self, node: SharedNode, places: DraPlaces, allocators: Allocators, inventory: GpuInventory) -> None:
        self._node = node
        self._places = places
        self._allocators = allocators
        self._inventory = inventory
        self.divide_by = dividing(
            node.resources.divide_by, node.division, allocators.by_nodes, lambda: inventory.present
        )

    @property
    def vgpus_per_gpu(self) -> int:
        return self._node.division.vgpus_per_gpu

    @property
    def handover(self) -> Collection[Handover]:
        return self._node.handover.ways

    def hand_over_by(self, ways: Collection[Handover]) -> None:
        self._node.resources.hand_over_by(ways)

    def lost_by(self, newest: Cluster) -> str:
        no_dra = why_no_dra(newest, self._places, environment=os.environ)
        return no_dra or lost_at_a_start(self._inventory.present, *self._node.would_be(newest))

    def stays_by(self, newest: Cluster) -> str:
        division, by_plugin = self._node.division, self._allocators.by_plugin
        now, wanted = division.vgpus_per_gpu, newest.vgpus_per_gpu
        resources = {
            division.resource_of(one)
            for one in self._inventory.present
            if by_plugin(one.gpu) and division.follows(one.strategy, division.device(one.gpu))
        }
        others = ", ".join(sorted(one for one in resources if newest.parts_named_by(one) != wanted))
        if now == wanted or not others:
            return ""
        stays = f"no share of {others} is granted by it, so GPUs here stay divided by {now}"
        return f"vgpusPerGpu {now} -> {wanted}: {stays}"

    def go_on_beside(self, newest: Cluster) -> None:
        self._node.resources.go_on_beside(newest)

    def restart(self) -> None:
        end_for_a_restart()


def cluster_changes(
    node: SharedNode, places: DraPlaces, allocators: Allocators, inventory: GpuInventory
) -> ClusterChanges:
    """Follow the file while GPUs are shared."""
    return ClusterChanges(
        node.settings.policies, _restart_needed(node), _SharingNode(node, places, allocators, inventory)
    )


def changes_since_start(node: SharedNode) -> StartChanges:
    """Follow the file while there are no GPUs yet."""
    return StartChanges(node.settings.policies, _restart_needed(node), node.cluster)


def end_for_a_restart() -> None:
    """End this process gracefully: Kubernetes starts it again."""
    os.kill(os.getpid(), signal.SIGTERM)


def why_no_dra(cluster: Cluster, places: DraPlaces, *, environment: Mapping[str, str]) -> str:
    """Say why a start could have no GPUs allocated by DRA; empty if it could, or none is to be."""
    if not asks_for_dra(cluster, places):
        return ""
    from plugin.dra.api_server import ApiServer  # noqa: PLC0415 - 5 MiB that most nodes do not need

    try:
        ApiServer.from_environment(environment, credentials=places.service_account)
    except DraError as error:
        return str(error)
    return ""


def _restart_needed(node: SharedNode) -> RestartNeeded:
    return RestartNeeded(node.cluster, node_name=node.settings.node_name, hands_over=True)
