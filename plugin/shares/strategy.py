"""How a GPU is shared: which sharing strategy each GPU of a node has, and what holding a share needs to know of it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, assert_never

from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import NumberOf
from plugin.gpus.reading import Check, NotShareableError
from policies.cluster import Cluster
from policies.contract import MOST_MPS_CLIENTS, MPS, SharingStrategy
from policies.node_state import LEFT_TO_OTHERS


class SharedGpu(Protocol):
    """A GPU, how it is shared, and its health."""

    @property
    def gpu(self) -> Gpu: ...  # noqa: D102 - the name says it
    @property
    def strategy(self) -> SharingStrategy: ...  # noqa: D102 - likewise
    @property
    def why(self) -> str: ...  # noqa: D102 - it is unhealthy; empty if it is healthy
    @property
    def is_reached(self) -> bool: ...  # noqa: D102 - by NVML, as what is shared: not gone, lost or in MIG mode


_MOST_NAMED = 2  # of GPUs or instances of one kind
_OTHERWISE = "share it by time-slicing or whole, with `nodes` in _cluster.yaml"

StrategyOf = Callable[[Gpu], SharingStrategy | None]  # None: the GPU is left to another device plugin
PartsOf = Callable[[Gpu, SharingStrategy], int]  # into how many vGPUs a GPU is divided under a strategy


@dataclass(frozen=True, slots=True)
class Mps:
    """GPUs shared through MPS: one control daemon per GPU."""

    pipe_directory: str  # as containers see it; each GPU's daemon has the directory of its UUID in it
    mount_sources: str = ""  # directory of the node with what containers get of the former; empty for itself


@dataclass(frozen=True, slots=True)
class TimeSlicing:
    """GPUs shared by turns: nothing holds a container to its share."""


@dataclass(frozen=True, slots=True)
class Whole:
    """GPUs allocated whole: nobody else is on them."""


Sharing = Mps | TimeSlicing | Whole


def led(sharing: Sharing, serving: Mps | None) -> Sharing:
    """Have what is shared by MPS lead to where the daemons are *serving*, if anybody says."""
    return serving if serving is not None and isinstance(sharing, Mps) else sharing


def strategies(cluster: Cluster, *, node_name: str, number_of: NumberOf, default: SharingStrategy) -> StrategyOf:
    """Make the function that says how a GPU of this node is shared; *default* holds where no entry of `nodes` fits."""

    def strategy_of(gpu: Gpu) -> SharingStrategy | None:
        number = number_of(gpu)
        if gpu.instance:
            return cluster.strategy_of_instances(node=node_name, model=gpu.model, index=number)
        return cluster.strategy(node=node_name, model=gpu.model, index=number, otherwise=default)

    return strategy_of


def check_of(strategy_of: StrategyOf, parts_of: PartsOf) -> Check:
    """Make the function that says whether a GPU can be shared as it is to be, and into as many vGPUs."""

    def check(gpu: Gpu) -> None:
        strategy = strategy_of(gpu)
        if gpu.instance and strategy is None:
            raise NotShareableError(
                f"{gpu.physical_uuid} is in MIG mode, and {LEFT_TO_OTHERS}: `nodes` in "
                "_cluster.yaml can say mig: shared or whole"
            )
        if strategy is not None and (why := misfit(gpu, strategy, vgpus_per_gpu=parts_of(gpu, strategy))):
            raise NotShareableError(why)

    return check


def misfit(gpu: Gpu, strategy: SharingStrategy, *, vgpus_per_gpu: int) -> str:
    """Say why a GPU cannot be divided into so many vGPUs; empty if it can be."""
    return misfits([(gpu, strategy, vgpus_per_gpu)])


def misfits(divided: Iterable[tuple[Gpu, SharingStrategy, int]]) -> str:
    """Say which GPUs cannot be divided into so many vGPUs under their strategy, and what all of them need."""
    found = [
        (gpu, parts, clients)
        for gpu, strategy, parts in divided
        if strategy == MPS and (clients := _clients(gpu)) < parts
    ]
    instances = [one for one in found if one[0].instance]
    old = [gpu for gpu, _, clients in found if not clients and not gpu.instance]
    others = [one for one in found if one[2] and not one[0].instance]
    return "; ".join(filter(None, (_of_instances(instances), _of_old(old), _of_others(others))))


def _clients(gpu: Gpu) -> int:
    return MOST_MPS_CLIENTS if gpu.mps_clients is None else gpu.mps_clients


def _of_instances(found: Sequence[tuple[Gpu, int, int]]) -> str:
    if not found:
        return ""
    kinds = [*dict.fromkeys((gpu.profile, parts, clients) for gpu, parts, clients in found)]
    each = [
        f"{parts} vGPUs are more than the {clients} clients that MPS serves on "
        + _some([gpu.uuid for gpu, *these in found if [gpu.profile, *these] == [profile, parts, clients]])
        for profile, parts, clients in kinds[:_MOST_NAMED]
    ]
    if more := len(kinds) - len(each):
        each.append(f"likewise those of {more} more profile{'s' * (more > 1)}")
    fitting = {gpu.profile: max(1, clients) for gpu, _, clients in sorted(found, key=lambda one: -one[2])}
    written = ", ".join(f"{profile}: {clients}" for profile, clients in fitting.items())
    return (
        f"{', and '.join(each)} with this driver: write vgpusPerInstance: {{{written}}} in _cluster.yaml, or mig: whole"
    )


def _of_old(gpus: Sequence[Gpu]) -> str:
    uuids = _some([gpu.uuid for gpu in gpus])
    are = "are" if len(gpus) > 1 else "is"
    return f"{uuids} {are} older than Volta, and MPS limits nothing there: {_OTHERWISE}" if gpus else ""


def _of_others(found: Sequence[tuple[Gpu, int, int]]) -> str:
    if not found:
        return ""
    numbers = dict.fromkeys((parts, clients) for _, parts, clients in found)
    each = [
        f"vgpusPerGpu {parts} is more than the {clients} clients that MPS serves on "
        + _some([gpu.uuid for gpu, *these in found if these == [parts, clients]])
        for parts, clients in numbers
    ]
    return f"{', and '.join(each)} with this driver: lower it in _cluster.yaml, or {_OTHERWISE}"


def _some(uuids: Sequence[str]) -> str:
    """Name as many as leave room for what to do, where a status cuts long sentences."""
    named, more = uuids[:_MOST_NAMED], len(uuids) - _MOST_NAMED
    return f"{', '.join(named)} and {more} more" if more > 0 else " and ".join(named)


def sharing_of(strategy: SharingStrategy, cluster: Cluster) -> Sharing:
    """Say what holding a container to its share needs to know."""
    match strategy:
        case "mps":
            return Mps(cluster.mps.pipe_directory)
        case "time-slicing":
            return TimeSlicing()
        case "whole":
            return Whole()
        case _:
            assert_never(strategy)
