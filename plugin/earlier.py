"""What the plugin before this one knew of the node's GPUs, since the machine was started."""

from collections.abc import Callable, Collection

from plugin.health.inventory import GpuInventory
from plugin.health.missing import as_reached
from plugin.health.state import NodeHealth, read_node_health
from plugin.settings import Settings
from plugin.shares.strategy import StrategyOf
from plugin.state_files import boot_id


def earlier(settings: Settings) -> NodeHealth | None:
    """Read what an earlier plugin knew since the same boot; None if that is nothing, or of simulated GPUs."""
    before = read_node_health(settings.state_dir)
    return before if before and before.boot_id == boot_id() and settings.simulate is None else None


def expected_gpus(settings: Settings) -> frozenset[str]:
    """Name the physical GPUs, by UUID, that an earlier plugin knew, itself or by their MIG instances."""
    before = earlier(settings)
    known = [as_reached(health, before.reached) for health in before.known.values()] if before else []
    return frozenset(gpu.physical_uuid for gpu in known if gpu)


def restored_inventory(
    settings: Settings, strategy_of: StrategyOf, *, held: Callable[[Collection[str]], Collection[str]]
) -> GpuInventory:
    """
    Make the inventory, with what an earlier plugin knew; simulated GPUs are new each time.

    *held* says of which GPUs containers hold something, as `GpuInventory` asks it.
    """
    return GpuInventory(
        strategy_of=strategy_of,
        application_xids=settings.application_xids,
        before=earlier(settings),
        held=held,
    )
