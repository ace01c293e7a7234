"""When an administrator's word ends a fault."""

import pytest

from plugin.health.gpu_state import GpuState, restored
from plugin.health.recovery import after_word
from plugin.health.rules import after_nvml_failure, after_report
from plugin.health.state import FaultName
from tests.plugin.health.gpu_story import GOOD, LOST, MIG, NEEDS_RESET, OLD, Story


def word(story: Story) -> tuple[Story, str]:
    """Say that all of a GPU's faults of now are over; the story goes on with what follows."""
    recovered = after_word(story.state, [FaultName.of(fault) for fault in story.faults])
    story.state = recovered.state
    return story, recovered.refused


def test_a_fault_that_only_a_reset_would_end_is_ended_by_a_word() -> None:
    story = Story(OLD).xid(63).looks_for(3600, OLD)
    assert story.sources == ["xid"]
    recovered = after_word(story.state, [FaultName.of(fault) for fault in story.faults])
    assert (recovered.refused, [fault.xid for fault in recovered.cleared]) == ("", [63])
    assert recovered.state.open == ()
    story.state = recovered.state
    assert story.looks_for(3600, OLD).sources == []


def test_the_next_error_counts_as_the_first_did() -> None:
    story, refused = word(Story(OLD).xid(63).looks(OLD))
    assert refused == ""
    assert story.looks_for(60, OLD).xid(79).looks_for(3600, OLD).sources == ["xid"]


def test_a_fault_that_was_ended_is_not_known_to_the_next_plugin() -> None:
    story, _ = word(Story(OLD).xid(69).looks(OLD))
    assert restored(story.faults).open == ()


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (Story(), "it is healthy"),
        (Story(OLD).xid(79).looks(LOST), "NVML does not reach it: GPU is lost, as the last look shows: it recovers"),
        (Story(OLD).xid(79).looks(None), "NVML no longer lists it, as the last look shows"),
        (Story().xid(79).looks(NEEDS_RESET), "the driver asks for a reset of the GPU, as the last look shows"),
        (Story().looks(MIG), "it is in MIG mode, as the last look shows: it recovers once its MIG mode is off"),
    ],
)
def test_what_is_seen_now_cannot_be_ended_by_a_word(story: Story, why: str) -> None:
    before = story.state
    after, refused = word(story)
    assert refused.startswith(why)
    assert after.state == before


def test_nothing_is_ended_while_nvml_tells_nothing() -> None:
    story = Story(OLD).xid(79).looks(OLD)
    story.state = after_nvml_failure(story.state, "no driver", story.now)
    assert word(story)[1].startswith("no driver, as the last look shows")


def test_a_gpu_that_was_lost_and_is_reached_again_can_be_recovered() -> None:
    story = Story(OLD).looks(LOST, OLD)
    story.generation = 1
    assert story.sources == ["lost"]
    recovered, refused = word(story)
    assert (refused, recovered.sources) == ("", [])
    assert recovered.looks_for(3600, OLD).sources == []


def test_a_daemon_that_is_not_ready_stays_so_and_keeps_no_other_fault() -> None:
    story = Story(OLD).xid(63).looks(OLD)
    story.state = after_report(story.state, "mps", "it hangs", story.now)
    recovered, refused = word(story)
    assert (refused, recovered.sources) == ("", ["mps"])
    assert word(recovered)[1] == "it hangs: it recovers once its MPS daemon is ready"


def test_a_fault_that_came_after_the_administrators_look_is_not_ended() -> None:
    story = Story(OLD).xid(63).looks(OLD)
    seen = [FaultName.of(fault) for fault in story.faults]
    story.xid(79).looks(OLD)
    recovered = after_word(story.state, seen)
    assert recovered.refused.startswith("the driver reported XID 79, which was not there when this was asked for")
    assert recovered.state == story.state


def test_a_driver_that_asks_for_nothing_ends_it_by_itself_and_a_word_may_hurry_it() -> None:
    story = Story().xid(79).looks(GOOD)
    recovered, refused = word(story)
    assert (refused, recovered.sources) == ("", [])


def test_an_empty_state_is_left_as_it_is() -> None:
    assert after_word(GpuState(), []).refused == "it is healthy"
