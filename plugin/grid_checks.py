"""Whether a GPU can have as many parts: MPS must serve a client in each, and by DRA the scheduler look through them."""

from collections.abc import Callable, Iterable, Sequence

from plugin.errors import DraError, MpsError
from plugin.gpus.gpu import Gpu
from plugin.gpus.reading import Check, NotShareableError
from plugin.shares.division import Division
from plugin.shares.strategy import PartsOf, SharedGpu, StrategyOf, misfits
from policies.contract import DRA, Allocation, SharingStrategy
from policies.sizes import is_too_fine, too_fine

AllocationOf = Callable[[Gpu], Allocation]


def check_of_grids(check: Check, allocation_of: AllocationOf, strategy_of: StrategyOf, parts_of: PartsOf) -> Check:
    """Let *check* say too whether the scheduler can look through the parts of a GPU that it allocates."""

    def check_grid(gpu: Gpu) -> None:
        check(gpu)
        strategy = strategy_of(gpu)
        if strategy is not None and allocation_of(gpu) == DRA and (why := _too_fine(gpu, parts_of(gpu, strategy))):
            raise NotShareableError(why)

    return check_grid


def dividing(
    divide_by: Callable[[int], None],
    division: Division,
    allocation_of: AllocationOf,
    shared: Callable[[], Sequence[SharedGpu]],
) -> Callable[[int], None]:
    """
    Make the function that has all of the *shared* GPUs divided by another number.

    It raises PluginError, and nothing has changed, where one cannot be.
    """

    def divide(vgpus_per_gpu: int) -> None:
        new, divided = division.by(vgpus_per_gpu), []
        for one in shared():
            is_by_dra = allocation_of(one.gpu) == DRA
            parts = new.parts(one.gpu, one.strategy) if is_by_dra else new.parts_of_resource_of(one)
            if is_by_dra and (why := _too_fine(one.gpu, parts)):
                raise DraError(why)
            divided.append((one.gpu, one.strategy, parts))
        if why := misfits(divided):
            raise MpsError(why)
        divide_by(vgpus_per_gpu)

    return divide


def lost_at_a_start(
    shared: Iterable[SharedGpu], allocation_of: AllocationOf, strategy_of: StrategyOf, parts_of: PartsOf
) -> str:
    """Say why a plugin that starts so would not share GPUs that are *shared* now; nothing of those left to others."""
    divided: list[tuple[Gpu, SharingStrategy, int]] = []
    for one in shared:
        strategy = strategy_of(one.gpu)
        if strategy is None:
            continue
        parts = parts_of(one.gpu, strategy)
        if allocation_of(one.gpu) == DRA and (why := _too_fine(one.gpu, parts)):
            return why
        divided.append((one.gpu, strategy, parts))
    return misfits(divided)


def _too_fine(gpu: Gpu, parts: int) -> str:
    """Say why a GPU cannot be divided into so many parts by DRA; empty if it can be."""
    setting = f"vgpusPerInstance: {gpu.profile}:" if gpu.instance else "vgpusPerGpu"
    return too_fine(parts, setting=setting) if is_too_fine(parts) else ""
