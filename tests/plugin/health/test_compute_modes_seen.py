"""GPUs whose compute mode keeps their tenants off."""

import pytest

from plugin.health.reports import Look
from policies.contract import SharingStrategy
from tests.plugin.health.test_inventory import FIRST, at, inventory, probe_of


@pytest.mark.parametrize(
    ("strategy", "mode", "closed"),
    [
        ("time-slicing", 0, False),
        ("time-slicing", 1, True),
        ("time-slicing", 2, True),
        ("time-slicing", 3, True),
        ("time-slicing", None, False),
        ("whole", 2, True),
        ("whole", 3, False),
        ("mps", 3, False),
    ],
)
def test_a_gpu_whose_compute_mode_keeps_its_tenants_off_is_unhealthy_until_it_does_not(
    strategy: SharingStrategy, mode: int | None, *, closed: bool
) -> None:
    known = inventory(strategies=(strategy, None, None))
    for number, is_closed in ((mode, closed), (0, False)):
        known.take(probe_of({FIRST: Look(recovery_action=0, compute_mode=number)}), at(0))
        known.judge_modes(at(0))
        (entry,) = known.entries
        assert ("its compute mode is" in entry.why) is is_closed
        assert bool(entry.why) is is_closed


@pytest.mark.parametrize(("strategy", "mode", "closed"), [("whole", 3, True), ("whole", 0, False), ("mps", 3, False)])
def test_a_gpu_that_left_mps_is_closed_while_the_daemon_has_it_to_itself(
    strategy: SharingStrategy, mode: int, *, closed: bool
) -> None:
    known = inventory(strategies=(strategy, None, None))
    known.take(probe_of({FIRST: Look(recovery_action=0, compute_mode=mode)}), at(0))
    known.judge_modes(at(0), by_mps=[FIRST])
    (entry,) = known.entries
    assert bool(entry.why) is closed
    known.judge_modes(at(0))
    (entry,) = known.entries
    assert not entry.why
