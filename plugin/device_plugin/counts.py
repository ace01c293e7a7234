"""Which vGPUs of each GPU a resource advertises: those that are held of it, and as many as are free."""

from collections.abc import Collection, Mapping
from functools import lru_cache

from plugin.device_plugin.holdings import Holder
from plugin.gpus.gpu import VGpuId
from plugin.shares.parts import advertised

Counted = tuple[frozenset[int], frozenset[int]]


class Counts:
    """Counts for *resource*, and anew only where something has changed: an allocation changes one GPU of several."""

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._known: dict[str, tuple[object, Counted]] = {}  # by UUID: of what, and what came out

    def of(self, gpu_uuid: str, held: Mapping[int, Holder], *, is_blind: bool, vgpus_per_gpu: int) -> Counted:
        """Say which vGPUs of a GPU are advertised, and by which earlier numbers some are held."""
        state = (held, is_blind, vgpus_per_gpu)
        known = self._known.get(gpu_uuid)
        if known is None or known[0] != state:
            counted = self._counted(held, is_blind=is_blind, vgpus_per_gpu=vgpus_per_gpu)
            known = self._known[gpu_uuid] = (state, counted)
        return known[1]

    def _counted(self, held: Mapping[int, Holder], *, is_blind: bool, vgpus_per_gpu: int) -> Counted:
        own: dict[int, int] = {}
        others: dict[int, int] = {}
        for index, holder in held.items():
            (own if holder.resource in ("", self._resource) else others)[index] = holder.of
        now = tuple(own) if is_blind else advertised(own, vgpus_per_gpu=vgpus_per_gpu, others=others)
        return frozenset(now), frozenset(own.values()) - {vgpus_per_gpu}


class Free:
    """Names what nobody holds, likewise."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Mapping[int, str]]] = {}

    def of(self, gpu_uuid: str, advertised: frozenset[int], held: Collection[int]) -> Mapping[int, str]:
        """Give the advertised vGPUs of a GPU that are not held, in order, by index."""
        left = advertised.difference(held)
        known = self._known.get(gpu_uuid)
        if known is None or known[0] != left:
            known = self._known[gpu_uuid] = (left, {index: device_id(gpu_uuid, index) for index in sorted(left)})
        return known[1]


@lru_cache(8192)  # the same IDs all day, and hundreds in each message
def device_id(gpu_uuid: str, index: int) -> str:
    """Write the ID of a vGPU."""
    return str(VGpuId(gpu_uuid, index))
