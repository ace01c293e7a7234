from collections.abc import Callable
from dataclasses import replace

import pytest

from plugin.health.gpu_state import restored
from plugin.health.reports import Look
from tests.plugin.health.gpu_story import GOOD, LOST, MIG, NEEDS_RESET, OLD, UNREADABLE, Story


def test_a_gpu_that_was_never_ill_is_healthy_from_its_first_look() -> None:
    assert Story(GOOD).faults == ()
    assert Story(OLD).faults == ()


def test_a_critical_xid_marks_it_at_once_and_says_what_when_and_what_helps() -> None:
    (fault,) = Story(GOOD).xid(79).faults
    assert (fault.source, fault.xid, fault.since) == ("xid", 79, "at 105")
    assert "XID 79" in fault.why
    assert "required no recovery action" in fault.comes_back
    (fault,) = Story(OLD).xid(79).faults
    assert "has been reset" in fault.comes_back


@pytest.mark.parametrize(
    ("end", "becomes"),
    [
        (lambda story: story.looks_for(15, GOOD), ["xid"]),  # the evidence is there for 10 s
        (lambda story: story.looks_for(20, GOOD), []),
        (lambda story: story.looks_for(15, GOOD).looks(NEEDS_RESET).looks_for(15, GOOD), ["xid", "recovery"]),
        (lambda story: story.looks_for(15, GOOD).xid(48).looks_for(15, GOOD), ["xid"]),
        (lambda story: story.looks_for(15, GOOD).looks(OLD).looks_for(15, GOOD), ["xid"]),  # it did not say
        (lambda story: story.looks_for(15, GOOD).nvml_fails().looks_for(15, GOOD), ["xid", "nvml"]),
    ],
)
def test_it_comes_back_once_the_driver_has_asked_for_nothing_for_fifteen_seconds(
    end: Callable[[Story], Story], becomes: list[str]
) -> None:
    assert end(Story(GOOD).xid(79)).sources == becomes


def test_evidence_is_answered_within_thirty_seconds() -> None:
    story = Story(GOOD).xid(79).looks_for(600, NEEDS_RESET)
    reset_at = story.seconds  # just after the last probe that saw the need
    while story.faults:
        story.looks(GOOD)
    assert 15 <= story.seconds - reset_at <= 30


def test_on_an_old_driver_answering_is_no_evidence_however_long() -> None:
    assert Story(OLD).xid(79).looks_for(3600, OLD).sources == ["xid"]


@pytest.mark.parametrize(
    ("energies_mj", "becomes"),
    [
        ([10, 500, 900, 1400], []),  # began anew
        ([10, 500, 900], ["xid"]),  # and that holds for 10 s only
        ([2000, 3000, 4000, 5000, 6000], ["xid"]),
        ([50_000, 40_000, 41_000, 42_000, 43_000], ["xid"]),  # a counter that steps back a little
        ([50_000, 20_000, 21_000, 22_000, 23_000], []),  # less than half: never seen below 1000, all the same
    ],
)
def test_on_an_old_driver_an_energy_counter_that_began_anew_is_evidence(
    energies_mj: list[int], becomes: list[str]
) -> None:
    assert Story(OLD).xid(79).counts(energies_mj).sources == becomes


def test_a_reset_before_the_xid_that_no_probe_saw_is_no_evidence_against_it() -> None:
    story = Story(replace(OLD, energy_mj=50_000)).xid(79, energy_mj=3)  # was reset since the last probe
    assert story.counts([10, 20, 30, 40]).sources == ["xid"]
    assert story.counts([1, 2, 3, 4]).faults == ()


def test_without_an_energy_at_the_xid_a_reset_after_the_next_probe_is_evidence() -> None:
    story = Story(replace(OLD, energy_mj=None)).xid(79)
    assert story.counts([50, 60, 70, 80]).sources == ["xid"]
    assert story.counts([1, 2, 3, 4]).faults == ()


def test_a_reset_before_the_xid_is_no_evidence_for_it() -> None:
    story = Story(OLD).xid(48).counts([50_000, 10, 20])  # was reset, nearly back
    assert story.xid(79).counts([30, 40, 50, 60, 70]).sources == ["xid"]
    assert story.counts([1, 2, 3, 4]).faults == ()


def test_a_gpu_without_a_counter_is_compared_from_its_first_reading() -> None:
    story = Story(Look()).xid(79).looks_for(60, Look())
    assert story.counts([700, 800, 900]).sources == ["xid"]
    assert story.counts([5, 6, 7, 8]).faults == ()


def test_a_gpu_that_was_away_is_well_once_a_new_start_of_nvml_finds_it_again() -> None:
    story = Story(OLD).looks(LOST)
    assert story.looks_for(60, replace(OLD, energy_mj=None)).sources == ["lost"]  # the same start: it may be a ghost
    story.looks(LOST).started_anew()
    assert story.looks_for(15, OLD).sources == ["lost"]
    assert story.looks_for(5, OLD).faults == ()


def test_being_found_again_is_evidence_for_an_xid_too() -> None:
    story = Story(OLD).xid(79).looks(LOST).started_anew()
    assert story.looks_for(20, OLD).faults == ()


def test_a_reading_that_failed_is_no_reset() -> None:
    story = Story(OLD).xid(79).looks(UNREADABLE).started_anew()
    assert story.looks_for(20, OLD).sources == ["xid"]


def test_a_gpu_that_vanished_keeps_its_fault_until_it_is_listed_again() -> None:
    story = Story(GOOD).looks(None)
    assert story.sources == ["gone"]
    assert story.started_anew().looks_for(15, GOOD).sources == ["gone"]
    assert story.looks(GOOD).faults == ()


def test_mig_mode_holds_it_back_until_it_is_off() -> None:
    story = Story(GOOD).looks_for(300, MIG)
    assert story.sources == ["mig"]
    assert story.looks_for(20, GOOD).faults == ()


def test_what_the_driver_asks_for_is_said() -> None:
    story = Story(GOOD).looks(NEEDS_RESET)
    assert [(fault.why, fault.comes_back) for fault in story.faults] == [
        ("the driver asks for a reset of the GPU", "after a reset of the GPU")
    ]
    story.looks(replace(GOOD, recovery_action=2))
    assert "reboot of the node" in story.faults[0].why
    assert "recovery action 99" in story.looks(replace(GOOD, recovery_action=99)).faults[0].why


def test_each_source_ends_by_its_own_evidence() -> None:
    story = Story(OLD).xid(79).looks(replace(OLD, in_mig_mode=True)).nvml_fails().mps("dead")
    assert story.sources == ["xid", "mig", "nvml", "mps"]
    assert story.looks_for(20, OLD).sources == ["xid", "mps"]
    assert story.mps(None).sources == ["xid"]
    assert story.counts([1, 2, 3, 4]).sources == []


def test_an_mps_daemon_that_is_ready_again_needs_no_patience_here() -> None:
    story = Story(GOOD).mps("dead")
    assert [(fault.source, fault.why, fault.comes_back) for fault in story.faults] == [
        ("mps", "dead", "once its MPS daemon is ready")
    ]
    assert story.looks_for(60, GOOD).sources == ["mps"]
    assert story.mps(None).faults == ()


def test_a_fault_that_is_told_again_keeps_its_beginning() -> None:
    story = Story(GOOD).xid(79).looks(NEEDS_RESET).xid(48)
    assert [(fault.source, fault.xid, fault.since) for fault in story.faults] == [
        ("xid", 48, "at 105"),
        ("recovery", None, "at 110"),
    ]


def test_an_earlier_plugins_faults_go_on_and_end_by_the_same_evidence() -> None:
    faults = Story(OLD).xid(79).looks(OLD).faults
    assert Story(OLD, state=restored(faults)).looks_for(600, OLD).sources == ["xid"]
    after_reset = replace(OLD, energy_mj=3)
    story = Story(after_reset, state=restored(faults))
    assert story.sources == ["xid"]
    assert story.looks_for(15, after_reset).faults == ()


def test_a_gpu_that_was_lost_for_an_earlier_plugin_was_reset_if_it_is_there_now() -> None:
    faults = Story(OLD).xid(79).looks(LOST).faults
    assert Story(OLD, state=restored(faults)).looks_for(15, OLD).faults == ()


def test_a_reset_that_an_earlier_plugin_has_seen_counts_still() -> None:
    story = Story(OLD).xid(79).looks(LOST).started_anew().looks(OLD)
    assert story.sources == ["xid", "lost"]
    assert Story(OLD, state=restored(story.faults)).looks_for(15, OLD).faults == ()
    assert Story(OLD, state=restored(story.xid(79).faults)).looks_for(600, OLD).sources == ["xid"]


def test_only_faults_that_need_a_reset_outlive_the_plugin() -> None:
    story = Story(GOOD).looks(MIG).nvml_fails().mps("dead").looks(None).xid(79)
    assert [fault.source for fault in restored(story.faults).faults] == ["xid"]
