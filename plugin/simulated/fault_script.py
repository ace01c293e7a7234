"""What a script of faults says of the GPUs at a moment; all moments are in seconds since the start."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from plugin.gpus.gpu import Gpu
from plugin.simulated.faults import LostFault, NvmlFault, ScriptedFault, XidFault


@dataclass(frozen=True, slots=True)
class FaultScript:
    """The faults of a node, by their beginning."""

    faults: tuple[ScriptedFault, ...]

    def nvml_failed(self, *, since: float, until: float) -> bool:
        """Whether NVML failed at any moment from *since* to *until*."""
        return any(fault.held(since=since, until=until) for fault in self.faults if isinstance(fault, NvmlFault))

    def was_lost(self, gpu: Gpu, *, since: float, until: float) -> bool:
        """Whether *gpu*, or that of which it is an instance, was lost at any moment from *since* to *until*."""
        return any(fault.held(since=since, until=until) for fault in self._losses(gpu.physical_uuid))

    def needs_reset(self, gpu: Gpu, now: float) -> bool:
        """Whether the driver asks for a reset of *gpu*."""
        return any(fault.holds(now) and fault.asks_for_reset for fault in self._xids(gpu))

    def last_reset(self, gpu: Gpu, now: float) -> float | None:
        """When *gpu* was reset the last time; None if it was not yet."""
        by_xid = (fault.recovers_seconds for fault in self._xids(gpu) if fault.asks_for_reset)
        by_loss = (fault.recovers_seconds for fault in self._losses(gpu.uuid))
        return max((seconds for seconds in chain(by_xid, by_loss) if seconds <= now), default=None)

    def next_fault(self, now: float) -> float | None:
        """When the next fault begins; None if there is none left."""
        return min((fault.at_seconds for fault in self.faults if fault.at_seconds > now), default=None)

    def xids(self, now: float) -> Iterator[tuple[int, XidFault]]:
        """List the XIDs that have come so far, each with its place among the faults."""
        for place, fault in enumerate(self.faults):
            if isinstance(fault, XidFault) and fault.at_seconds <= now:
                yield place, fault

    def _xids(self, gpu: Gpu) -> Iterator[XidFault]:
        return (fault for fault in self.faults if isinstance(fault, XidFault) and fault.gpu_uuid == gpu.uuid)

    def _losses(self, uuid: str) -> Iterator[LostFault]:
        return (fault for fault in self.faults if isinstance(fault, LostFault) and fault.gpu_uuid == uuid)
