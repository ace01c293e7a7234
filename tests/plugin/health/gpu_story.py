"""A GPU's life in one line each, for the tests of the rules."""

from collections.abc import Iterable
from dataclasses import replace

from plugin.health.gpu_state import GpuState, Moment
from plugin.health.reports import Event, Look
from plugin.health.rules import after_event, after_look, after_nvml_failure, after_report
from plugin.health.state import Fault

GOOD = Look(recovery_action=0, energy_mj=1000)
OLD = Look(energy_mj=1000)  # of a driver that does not say what the GPU needs
LOST = Look(problem="GPU is lost", away=True)
UNREADABLE = Look(problem="Unknown Error")
MIG = replace(GOOD, in_mig_mode=True)
NEEDS_RESET = replace(GOOD, recovery_action=1)


class Story:
    """A GPU from its first good look on; a probe every five seconds."""

    def __init__(self, first: Look = GOOD, *, state: GpuState | None = None) -> None:
        self.seconds = 100.0
        self.generation = 1
        self.state = GpuState() if state is None else state
        self.looks(first)

    @property
    def now(self) -> Moment:
        return Moment(self.seconds, f"at {self.seconds:g}")

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self.state.faults

    @property
    def sources(self) -> list[str]:
        return [fault.source for fault in self.state.faults]

    def looks(self, *looks: Look | None) -> "Story":
        for look in looks:
            self.seconds += 5
            self.state = after_look(self.state, look, self.now, generation=self.generation)
        return self

    def looks_for(self, seconds: float, look: Look | None) -> "Story":
        return self.looks(*[look] * int(seconds / 5))

    def counts(self, energies_mj: Iterable[int], look: Look = OLD) -> "Story":
        return self.looks(*[replace(look, energy_mj=energy_mj) for energy_mj in energies_mj])

    def xid(self, number: int, *, energy_mj: int | None = None) -> "Story":
        """Hear of an XID; the GPU says its energy then, if it is not given, as at the last look."""
        energy_mj = self.state.energy_mj if energy_mj is None else energy_mj
        event = Event(seconds=self.seconds, gpu_uuid="GPU-0", what=f"XID {number}", xid=number, energy_mj=energy_mj)
        self.state = after_event(self.state, event, self.now)
        return self

    def started_anew(self) -> "Story":
        self.generation += 1
        return self

    def nvml_fails(self) -> "Story":
        self.state = after_nvml_failure(self.state, "NVML fails", self.now)
        return self

    def mps(self, why: str | None) -> "Story":
        self.state = after_report(self.state, "mps", why, self.now)
        return self
