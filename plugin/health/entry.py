"""What the inventory knows of one GPU."""

from collections.abc import Mapping
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

    def seen_in(self, looks: Mapping[str, Look]) -> Look | None:
        """Find what a probe saw of it, by UUID, which may be another MIG instance's now; None if NVML lists no GPU."""
        look = looks.get(self.gpu.uuid)
        if look is None:
            of_gpu = looks.get(self.gpu.physical_uuid)
            return of_gpu if of_gpu is None or of_gpu.problem else Look(destroyed=True)
        return look if look.profile in ("", self.gpu.profile) else replace(look, remade_as=look.profile)

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
