"""What the driver tells, and what holds where it tells nothing, through the real bindings."""

import pytest

from plugin.gpus.nvml import Nvml
from tests.plugin.health.conftest import StartNode
from tests.plugin.health.watched_node import logged, looks_often
from tests.plugin.nvml_library import Script
from tests.plugin.waiting import wait_until

FIRST = "GPU-00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("line", ["wait_fails 15", "wait_fails 999", "wait_returns"])
def test_where_events_cannot_be_waited_for_the_gpus_are_looked_at(
    start: StartNode, nvml: Nvml, script: Script, line: str
) -> None:
    script.say(line)
    node = start(nvml=nvml)
    looks_often(script)
    assert node.healthy() == [10, 10]
    script.say("recovery 1 1")
    node.becomes(10, 0)
    script.take_back(line)
    script.say("recovery 0 1", "xid 0 79")
    wait_until(lambda: "xid" in node.sources(0))


@pytest.mark.parametrize("line", ["wait_fails 15", "wait_fails 999"])
def test_on_an_old_driver_gpus_of_which_no_xid_would_be_heard_are_marked_until_one_would(
    start: StartNode, old_nvml: Nvml, script: Script, line: str
) -> None:
    node = start(nvml=old_nvml)
    script.say(line)
    node.becomes(0, 0)
    wait_until(lambda: node.sources(0) == node.sources(1) == ["nvml"])
    looks_often(script)
    assert node.healthy() == [0, 0]
    script.take_back(line)
    node.becomes(10, 10)


def test_on_an_old_driver_a_gpu_whose_events_cannot_be_registered_is_marked_until_they_are_and_is_heard_then(
    start: StartNode, old_nvml: Nvml, script: Script
) -> None:
    script.say("register_fails 1 999")
    node = start(nvml=old_nvml)
    wait_until(lambda: node.sources(1) == ["nvml"])
    assert node.healthy() == [10, 0]
    script.say("xid 0 79")  # what is registered goes on
    wait_until(lambda: node.sources(0) == ["xid"])
    script.take_back("register_fails 1 999")
    node.becomes(0, 10)
    script.say("xid 1 79")
    wait_until(lambda: node.sources(1) == ["xid"])


def test_on_an_old_driver_a_gpu_is_heard_that_does_not_say_who_it_is_at_that_moment(
    start: StartNode, old_nvml: Nvml, script: Script
) -> None:
    node = start(nvml=old_nvml)
    node.becomes(10, 10)
    script.say("nameless 1", "xid 1 48")
    wait_until(lambda: "xid" in node.sources(1))
    script.take_back("nameless 1")
    assert node.healthy() == [10, 0]


@pytest.mark.parametrize(("library", "code"), [("nvml", 999), ("old_nvml", 3)], ids=["tells recovery", "not supported"])
def test_a_gpu_whose_events_cannot_be_registered_is_looked_at_where_that_is_enough_or_all_that_can_be(
    start: StartNode, request: pytest.FixtureRequest, script: Script, library: str, code: int
) -> None:
    nvml: Nvml = request.getfixturevalue(library)
    script.say(f"register_fails 1 {code}")
    node = start(nvml=nvml)
    looks_often(script)
    looks_often(script)
    assert node.healthy() == [10, 10]


def test_a_driver_that_tells_of_no_events_is_looked_at(
    start: StartNode, nvml: Nvml, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    script.say("events 0 0", "events 1 0")
    node = start(nvml=nvml)
    script.say("recovery 1 1")
    node.becomes(10, 0)
    assert script.calls["wait"] == 0
    assert len(logged(caplog, "the driver does not report XIDs")) == 2


def test_only_events_that_a_gpu_supports_are_asked_for(start: StartNode, nvml: Nvml, script: Script) -> None:
    script.say("events 0 8")  # the library rejects others
    node = start(nvml=nvml)
    script.say("recovery 0 1", "xid 0 79")
    wait_until(lambda: set(node.sources(0)) == {"xid", "recovery"})


@pytest.mark.parametrize("event", ["event 1 0x8000 0", "event 1 0x100 0"])
def test_news_that_are_no_fault_are_a_reason_to_look(start: StartNode, nvml: Nvml, script: Script, event: str) -> None:
    node = start(nvml=nvml)
    script.say(event)
    looks_often(script)
    assert node.healthy() == [10, 10]


def test_an_event_of_a_gpu_that_cannot_say_who_it_is_marks_those_that_are_bad(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    node = start(nvml=nvml)
    script.say("nameless 1", "xid 1 79")
    node.becomes(10, 0)
    looks_often(script)
    assert node.healthy() == [10, 0]


RECOVERY_ACTION_CHANGED = "xid 0 154"


def test_news_that_the_driver_asks_for_nothing_cost_nothing(start: StartNode, nvml: Nvml, script: Script) -> None:
    node = start(nvml=nvml)
    script.say(RECOVERY_ACTION_CHANGED)
    looks_often(script)
    assert node.healthy() == [10, 10]
    assert node.sources(0) == []


def test_news_that_the_driver_asks_for_something_mark_the_gpu_for_as_long_as_it_does(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    node = start(nvml=nvml)
    script.say("recovery 0 1", RECOVERY_ACTION_CHANGED)
    wait_until(lambda: node.sources(0) == ["recovery"])
    script.take_back("recovery 0 1")
    node.becomes(10, 10)


def test_where_the_driver_does_not_say_what_it_asks_for_news_of_it_are_an_error(
    start: StartNode, nvml: Nvml, script: Script
) -> None:
    script.say("tells_nothing")
    node = start(nvml=nvml)
    script.say(RECOVERY_ACTION_CHANGED)
    wait_until(lambda: node.sources(0) == ["xid"])
    assert node.healthy() == [0, 10]


def test_an_unhealthy_gpu_behind_fifty_thousand_faults_of_programs_is_marked(
    start: StartNode, nvml: Nvml, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    node = start(nvml=nvml)
    script.say("tells_nothing", "flood 0 31 50000", "xid 1 79")
    node.becomes(10, 0)
    (line,) = logged(caplog, "application fault on a GPU")
    assert (line["gpu"], line["xid"]) == (FIRST, 31)
