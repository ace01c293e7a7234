"""MIG instances that are destroyed, made again, or missing with their GPU."""

from dataclasses import replace

import pytest

from plugin.health.reports import Event, Look
from tests.plugin.health.test_missing import (
    FIRST,
    GPUS,
    INSTANCE,
    LOST,
    PARTED,
    at,
    inventory,
    look,
    of_before,
    one_listed,
    shown,
    written_by,
)

CUT = PARTED.parent_uuid
PRESENT = {FIRST: Look(), CUT: Look(in_mig_mode=True)}
NOT_LISTED = {FIRST: Look()}
NOT_REACHED = {FIRST: Look(), CUT: LOST}


def test_an_instance_of_another_profile_with_its_uuid_is_another_one() -> None:
    held = {INSTANCE.uuid}
    known = inventory(of_before(INSTANCE), held=held)
    one_listed(known, 50)
    another = replace(INSTANCE, instance=replace(PARTED, profile="2g.20gb"))
    looks = {FIRST: Look(), INSTANCE.uuid: Look(profile="2g.20gb")}
    look(known, 51, looks, GPUS[0], another)
    (entry,) = known.entries[1:]
    assert entry.gpu.profile == "1g.10gb"
    assert "it was destroyed, and a MIG instance of the profile 2g.20gb has its UUID now" in entry.why
    held.clear()
    for seconds in (52, 53):
        look(known, seconds, looks, GPUS[0], another)
    assert [(one.gpu.profile, one.why) for one in known.entries[1:]] == [("2g.20gb", "")]


def why_at_last(absent: dict[str, Look], *, restarts: int) -> str:
    """Have an XID of a MIG instance, then *absent* without it, then it again, in another run of NVML; why at last."""
    known = inventory(held={INSTANCE.uuid})
    there = {**PRESENT, INSTANCE.uuid: Look()}
    look(known, 1, there, GPUS[0], INSTANCE)
    known.take(Event(seconds=2, gpu_uuid=INSTANCE.uuid, what="XID 95", xid=95), at(2))
    look(known, 3, absent, GPUS[0])
    if restarts:
        known = inventory(written_by(known), held={INSTANCE.uuid})
        look(known, 10, absent, GPUS[0])
    for seconds in (20, 40):
        look(known, seconds, there, GPUS[0], INSTANCE, generation=2)
    return known.entries[1].why


@pytest.mark.parametrize("restarts", [0, 1])
def test_an_instance_that_was_destroyed_and_made_again_is_not_repaired_by_that(restarts: int) -> None:
    assert why_at_last(PRESENT, restarts=restarts) == "the driver reported XID 95"


@pytest.mark.parametrize("restarts", [0, 1])
@pytest.mark.parametrize("absent", [NOT_LISTED, NOT_REACHED], ids=["not listed", "not reached"])
def test_it_is_where_its_gpu_was_away_with_it(absent: dict[str, Look], restarts: int) -> None:
    assert why_at_last(absent, restarts=restarts) == ""


def test_an_error_that_comes_while_an_instance_is_missing_outlives_its_absence() -> None:
    held = {INSTANCE.uuid}
    known = inventory(of_before(INSTANCE), held=held)
    look(known, 50, PRESENT, GPUS[0])
    known.take(Event(seconds=51, gpu_uuid=CUT, what="XID 95", xid=95), at(51))
    held.clear()
    look(known, 52, PRESENT, GPUS[0])
    assert shown(known) == {}
    for seconds in (53, 90):
        look(known, seconds, {**PRESENT, INSTANCE.uuid: Look()}, GPUS[0], INSTANCE)
    assert known.entries[1].why == "the driver reported XID 95"


def test_an_instance_that_is_missing_on_a_gpu_that_is_lost_is_lost_with_it() -> None:
    known = inventory(of_before(INSTANCE), held={INSTANCE.uuid})
    look(known, 50, NOT_REACHED, GPUS[0])
    assert shown(known) == {INSTANCE.uuid: ["lost"]}
