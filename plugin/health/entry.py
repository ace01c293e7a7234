"""What the inventory knows of one GPU."""

from dataclasses import dataclass, replace

from plugin.gpus.gpu import Gpu
from plugin.health.gpu_state import NOT_REACHED, GpuState
from plugin.health.reports import Look
from plugin.health.state import ApplicationFault, GpuHealth, Recovery
from policies.contract import SharingStrategy

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One GPU."""

    gpu: Gpu
    strategy: SharingStrategy  # how it is shared
    state: GpuState
    since: str  # ISO 8601, UTC: when it became healthy or unhealthy
    application_fault: ApplicationFault | None
    recovery: Recovery | None = None  # the last one that was asked for
    compute_mode: str = ""  # empty where it is not known

    @property
    def why(self) -> str:
        """Why it is unhealthy; empty if it is healthy."""
        return "; ".join(fault.why for fault in self.state.faults)

    @property
    def is_reached(self) -> bool:
        """Whether NVML reaches it as what is shared."""
        return not any(fault.source in NOT_REACHED for fault in self.state.faults)

    def is_another(self, gpu: Gpu) -> bool:
        """Whether *gpu*, which has its UUID now, is a MIG instance of another profile: this one was destroyed."""
        return gpu.profile != self.gpu.profile

    def looked_at(self, look: Look | None) -> Look | None:
        """Judge what a probe saw at its UUID, which may be another MIG instance; None where it saw nothing."""
        if look is None or look.profile in ("", self.gpu.profile):
            return look
        return replace(look, remade_as=look.profile)

    def health(self, resource: str) -> GpuHealth:
        """Write down how it is; *resource* is what its vGPUs are advertised as."""
        gpu = self.gpu
        return GpuHealth(
            uuid=gpu.uuid,
            index=gpu.index,
            model=gpu.model,
            resource=resource,
            since=self.since,
            memory_mib=gpu.memory_bytes // _MIB,
            reserved_mib=None if gpu.reserved_bytes is None else -(-gpu.reserved_bytes // _MIB),
            faults=self.state.faults,
            application_fault=self.application_fault,
            recovery=self.recovery,
            compute_mode=self.compute_mode,
        )
