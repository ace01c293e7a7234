"""What becomes of a changed `_cluster.yaml`: the plugin takes it, restarts for it, or leaves it and keeps its GPUs."""

import os
import signal
from collections.abc import Mapping

from plugin.allocators import Allocators, DraPlaces, asks_for_dra
from plugin.errors import DraError
from plugin.grid_checks import dividing, lost_at_a_start
from plugin.health.inventory import GpuInventory
from plugin.restart import ClusterChanges, RestartNeeded, StartChanges
from plugin.shared_node import SharedNode
from plugin.shares.cdi_directory import why_unwritable
from policies.cluster import Cluster


def cluster_changes(
    node: SharedNode, places: DraPlaces, allocators: Allocators, inventory: GpuInventory
) -> ClusterChanges:
    """Follow the file while GPUs are shared."""

    def lost_by(newest: Cluster) -> str:
        needs_cdi = "cdi" in newest.handover or asks_for_dra(newest, places)
        return (
            why_no_dra(newest, places, environment=os.environ)
            or (why_unwritable(node.handover.cdi_dir) if needs_cdi else "")
            or lost_at_a_start(inventory.present, *node.would_be(newest))
        )

    def stays_by(newest: Cluster) -> str:
        now, wanted = node.division.vgpus_per_gpu, newest.vgpus_per_gpu
        resources = {
            node.division.resource_of(one)
            for one in inventory.present
            if allocators.by_plugin(one.gpu) and node.division.follows(one.strategy, node.division.device(one.gpu))
        }
        others = ", ".join(sorted(one for one in resources if newest.parts_named_by(one) != wanted))
        if now == wanted or not others:
            return ""
        return f"vgpusPerGpu {now} -> {wanted}: {others} is not granted by it, so GPUs here stay divided by {now}"

    return ClusterChanges(
        node.settings.policies,
        _restart_needed(node),
        divided_by=lambda: node.division.vgpus_per_gpu,
        divide_by=dividing(node.resources.divide_by, node.division, allocators.by_nodes, lambda: inventory.present),
        restart=end_for_a_restart,
        lost_by=lost_by,
        stays_by=stays_by,
    )


def changes_since_start(node: SharedNode) -> StartChanges:
    """Follow the file while there are no GPUs yet."""
    return StartChanges(node.settings.policies, _restart_needed(node), vgpus_per_gpu=node.cluster.vgpus_per_gpu)


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
