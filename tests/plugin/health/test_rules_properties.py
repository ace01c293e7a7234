"""The rules against GPUs whose true state is known: whatever happens to them, in whatever order."""

from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from plugin.health.gpu_state import restored
from plugin.health.reports import Look
from plugin.health.rules import STEADY_SECONDS
from tests.plugin.health.gpu_story import Story

MILLIJOULES_A_PROBE = 500_000  # 100 W for 5 s

RARE = ("reset", "lost", "unreadable", "gone", "start_nvml", "nvml_fails", "mig", "mps", "restart", "asks", "xid")
stories = st.lists(st.sampled_from((*["probe"] * 6, *RARE)), min_size=1, max_size=60)


@dataclass
class TrueGpu:
    """What a GPU does; the rules see its looks alone."""

    tells_recovery: bool
    counts_energy: bool = True
    story: Story = field(init=False)
    energy_mj: int = 10_000_000
    is_away: bool = False
    is_listed: bool = True
    is_readable: bool = True
    in_mig_mode: bool = False
    asks: int = 0
    mps: str | None = None
    reset_since_xid: bool = True
    evidence_since: float | None = None  # for an XID: the first look of those that all had it

    def __post_init__(self) -> None:
        self.story = Story(self.look() or Look())

    def look(self) -> Look | None:
        if not self.is_listed:
            return None
        if self.is_away:
            return Look(problem="GPU is lost", away=True)
        if not self.is_readable:
            return Look(problem="Unknown Error")
        return Look(
            in_mig_mode=self.in_mig_mode,
            recovery_action=self.asks if self.tells_recovery else None,
            energy_mj=self.energy_mj if self.counts_energy else None,
        )

    def do(self, step: str) -> None:
        getattr(self, f"_{step}")()

    def _xid(self) -> None:
        self.story.xid(79, energy_mj=self.energy_mj if self.counts_energy else None)
        self.asks = 1
        self.reset_since_xid = False
        self.evidence_since = None

    def _reset(self) -> None:
        self.energy_mj = 0
        self.asks = 0
        self.is_readable = True
        self.reset_since_xid = True

    def _lost(self) -> None:
        self.is_away = True

    def _unreadable(self) -> None:
        self.is_readable = not self.is_readable

    def _gone(self) -> None:
        self.is_listed = not self.is_listed
        if self.is_listed:  # it was taken out and put in again
            self._reset()
            self.story.started_anew()

    def _start_nvml(self) -> None:
        self.story.started_anew()
        if self.is_away:
            self.is_away = False
            self._reset()

    def _nvml_fails(self) -> None:
        self.story.nvml_fails()

    def _mig(self) -> None:
        self.in_mig_mode = not self.in_mig_mode

    def _mps(self) -> None:
        self.mps = None if self.mps else "dead"
        self.story.mps(self.mps)

    def _restart(self) -> None:
        self.story.state = restored(self.story.faults)
        self.story.generation = 0
        self._start_nvml()
        self.story.mps(self.mps)

    def _asks(self) -> None:
        self.asks = 1 - self.asks

    def _probe(self) -> None:
        self.energy_mj += MILLIJOULES_A_PROBE
        look = self.look()
        self.story.looks(look)
        shows_end = look is not None and not look.problem
        if shows_end and look is not None:
            shows_end = look.recovery_action == 0 or (look.recovery_action is None and self.reset_since_xid)
        if not shows_end:
            self.evidence_since = None
        elif self.evidence_since is None:
            self.evidence_since = self.story.seconds


RESET_BEFORE_XID = ["unreadable", "probe", "reset", "xid", "restart", *["probe"] * 4]


@given(steps=stories, tells_recovery=st.booleans(), counts_energy=st.booleans())
@example(steps=RESET_BEFORE_XID, tells_recovery=False, counts_energy=False)
def test_an_xid_is_over_after_evidence_that_held_long_enough_and_never_without(
    *,
    steps: list[str],
    tells_recovery: bool,
    counts_energy: bool,
) -> None:
    gpu = TrueGpu(tells_recovery=tells_recovery, counts_energy=counts_energy)
    for step in steps:
        had_xid = "xid" in gpu.story.sources
        gpu.do(step)
        if step == "xid":
            assert "xid" in gpu.story.sources
        elif had_xid and "xid" not in gpu.story.sources:
            assert step == "probe"
            assert gpu.evidence_since is not None
            assert gpu.story.seconds - gpu.evidence_since >= STEADY_SECONDS


@given(steps=stories, tells_recovery=st.booleans())
def test_a_gpu_that_is_repaired_is_back_within_thirty_seconds(
    *,
    steps: list[str],
    tells_recovery: bool,
) -> None:
    gpu = TrueGpu(tells_recovery=tells_recovery)
    for step in ["probe", *steps]:
        gpu.do(step)
    gpu.is_listed, gpu.in_mig_mode = True, False
    gpu.do("probe")  # seen before the repair, or a counter could have passed where it was
    gpu.do("lost")
    gpu.do("probe")
    gpu.do("start_nvml")
    gpu.story.mps(None)
    for _ in range(5):  # the first may be five seconds after the repair
        gpu.do("probe")
    assert gpu.story.sources == []


@given(steps=stories, tells_recovery=st.booleans())
def test_what_happens_to_one_source_changes_no_other(*, steps: list[str], tells_recovery: bool) -> None:
    with_all, without = TrueGpu(tells_recovery=tells_recovery), TrueGpu(tells_recovery=tells_recovery)
    for step in steps:
        with_all.do(step)
        if step not in ("mig", "mps"):
            without.do(step)
        assert [source for source in with_all.story.sources if source not in ("mig", "mps")] == without.story.sources


@given(steps=stories, tells_recovery=st.booleans())
def test_a_gpu_is_ill_while_anything_seen_last_is_wrong(*, steps: list[str], tells_recovery: bool) -> None:
    gpu = TrueGpu(tells_recovery=tells_recovery)
    for step in steps:
        gpu.do(step)
        gpu.do("probe")
        look = gpu.look()
        is_wrong = look is None or look.problem or look.in_mig_mode or look.recovery_action or gpu.mps
        assert gpu.story.faults or not is_wrong


@given(steps=stories, tells_recovery=st.booleans())
def test_each_source_has_one_fault_with_words_for_people(*, steps: list[str], tells_recovery: bool) -> None:
    gpu = TrueGpu(tells_recovery=tells_recovery)
    for step in steps:
        gpu.do(step)
        assert len(set(gpu.story.sources)) == len(gpu.story.sources)
        assert all(fault.why and fault.comes_back and fault.since for fault in gpu.story.faults)


def test_the_true_gpu_can_show_a_fault_that_an_answer_alone_would_hide() -> None:
    gpu = TrueGpu(tells_recovery=False)
    for step in ("probe", "xid", *["probe"] * 20):
        gpu.do(step)
    assert replace(gpu.look() or Look(), energy_mj=None) == Look()
    assert gpu.story.sources == ["xid"]
