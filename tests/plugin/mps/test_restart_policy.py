from dataclasses import replace

import pytest

from plugin.mps.answers import ServerState
from plugin.mps.restart_policy import Action, DaemonStatus, step
from plugin.mps.seen import Answered, Blocked, Gone, NoAnswer, NotStarted, Seen, Unreachable

Looks = list[tuple[float, Seen]]

FINE = Answered({7: "ACTIVE"})
UNSERVED = Answered({})
ACTIVE = Answered({1: "ACTIVE"})
FAULT = Answered({1: "FAULT"})
INITIALIZING = Answered({1: "INITIALIZING"})
SILENT = NoAnswer("no answer")
LEFT = Unreachable("its socket is gone", in_use=True)
USELESS = Unreachable("its socket is gone", in_use=False)


def watched(*looks: tuple[float, Seen]) -> tuple[DaemonStatus, list[Action]]:
    """Go through looks, each with its second."""
    watch, actions = DaemonStatus(), []
    for now_seconds, seen in looks:
        watch, action = step(watch, seen, now_seconds)
        actions.append(action)
    return watch, actions


def after(*looks: tuple[float, Seen]) -> DaemonStatus:
    return watched(*looks)[0]


def test_a_daemon_that_was_never_started_is_started_at_once_and_ready_once_it_answers() -> None:
    watch, actions = watched((0, Gone()), (1, FINE))
    assert actions == ["start", "wait"]
    assert (watch.state, watch.why) == ("ready", "")
    assert after((0, Gone())).state == "starting"


@pytest.mark.parametrize("bad", [SILENT, Gone(), Blocked("the GPU is lost"), LEFT, USELESS, FAULT])
def test_one_bad_look_is_enough_to_be_no_longer_ready_and_the_reason_is_said(bad: Seen) -> None:
    watch, actions = watched((0, Gone()), (1, ACTIVE), (4, bad))
    assert watch.state == ("fault" if bad == FAULT else "failed")
    assert watch.why
    assert actions[-1] == "wait"


def test_five_looks_without_an_answer_in_a_row_are_its_end() -> None:
    silence: Looks = [(second, SILENT) for second in range(1, 6)]
    assert watched((0, Gone()), *silence)[1] == ["start", "wait", "wait", "wait", "wait", "kill"]


def test_an_answer_between_them_saves_it() -> None:
    silence: Looks = [(second, SILENT) for second in range(1, 5)]
    looks: Looks = [(0, Gone()), *silence, (5, FINE), *((second + 5, SILENT) for second, _ in silence)]
    watch, actions = watched(*looks)
    assert "kill" not in actions
    assert after(*looks, (10, FINE)).state == "ready"
    assert watch.running


def test_a_server_in_a_state_that_a_newer_driver_may_have_is_not_ready_and_ends_nobodys_context() -> None:
    looks: Looks = [(0, Gone()), *((second, Answered({1: "ACTIVE", 2: "UNKNOWN"})) for second in range(1, 20))]
    watch, actions = watched(*looks)
    assert (watch.state, "kill" in actions) == ("failed", False)
    assert "unknown state" in watch.why
    assert after(*looks, (20, ACTIVE)).state == "ready"


@pytest.mark.parametrize(("state", "before"), [("UNKNOWN", ()), ("INITIALIZING", (1, 30, 61))])
def test_a_server_that_serves_nobody_is_the_end_of_its_daemon_where_nobody_holds_a_share(
    state: ServerState, before: tuple[int, ...]
) -> None:
    useless = Answered({1: state}, in_use=False)
    looks: Looks = [(0, Gone()), *((second, useless) for second in (*before, 62, 63, 64, 65))]
    watch, actions = watched(*looks, (66, useless))
    assert (actions[-1], watch.state, watch.running, watch.due_seconds) == ("kill", "failed", False, 67)
    assert "no container holds a share of the GPU, seen 5 times in a row; the next start" in watch.why
    assert "kill" not in actions[:-1]
    for other in (replace(useless, in_use=True), ACTIVE, FAULT, Blocked("lost")):
        assert "kill" not in watched(*looks, (66, other), *((67 + number, useless) for number in range(4)))[1]


def test_a_killed_daemon_is_started_again_after_the_pause() -> None:
    killed: Looks = [(0, Gone()), *((second, SILENT) for second in range(1, 6))]
    assert watched(*killed, (5.9, Gone()))[1][-1] == "wait"
    assert watched(*killed, (6, Gone()))[1][-1] == "start"


def test_the_pause_doubles_with_each_failure_up_to_a_minute() -> None:
    watch, now_seconds, pauses = DaemonStatus(), 0.0, []
    for _ in range(9):
        watch, _ = step(watch, Gone(), now_seconds)
        watch, _ = step(watch, NotStarted("no driver"), now_seconds)
        pauses.append(watch.due_seconds - now_seconds)
        assert watch.pause_seconds(now_seconds, longest=1000) == pauses[-1]
        now_seconds = watch.due_seconds
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("seen", [SILENT, LEFT, USELESS, FINE, FAULT, Blocked("clients keep it waiting")])
def test_a_daemon_that_a_kill_has_not_ended_runs_and_is_looked_at_with_pauses(seen: Seen) -> None:
    watch = after((0, Gone()), *((second, SILENT) for second in range(1, 6)), (50, seen))
    assert (watch.running, watch.pause_seconds(50, longest=3)) == (True, 3)


def test_failures_are_forgotten_after_a_steady_minute_and_not_before() -> None:
    failed_twice: Looks = [(0.0, Gone()), (0.0, NotStarted("")), (1.0, Gone()), (1.0, NotStarted("")), (3.0, Gone())]
    assert after(*failed_twice, (4.0, FINE), (63.9, FINE), (64.0, Gone())).due_seconds == 64 + 4
    assert after(*failed_twice, (4.0, FINE), (64.0, FINE), (65.0, Gone())).due_seconds == 65 + 1


def test_a_look_that_is_not_good_begins_the_minute_anew() -> None:
    failed: Looks = [(0.0, Gone()), (0.0, NotStarted("")), (1.0, Gone())]
    assert after(*failed, (2.0, FINE), (30.0, SILENT), (33.0, FINE), (70.0, FINE), (71.0, Gone())).failures == 2


def test_a_server_in_fault_is_left_to_recover() -> None:
    looks: Looks = [(0, Gone()), (1, ACTIVE), *((float(now), FAULT) for now in range(2, 500))]
    watch, actions = watched(*looks)
    assert set(actions[1:]) == {"wait"}
    assert watch.state == "fault"
    assert after(*looks, (501, ACTIVE)).state == "ready"


def test_a_server_that_recovers_is_in_fault_until_it_is_active() -> None:
    assert after((0, Gone()), (1, FAULT), (2, INITIALIZING)).state == "fault"
    assert after((0, Gone()), (1, FAULT), (2, INITIALIZING), (3, ACTIVE)).state == "ready"


def test_one_server_in_fault_beside_a_good_one_is_a_fault() -> None:
    assert after((0, Gone()), (1, Answered({1: "ACTIVE", 2: "FAULT"}))).state == "fault"


def test_a_server_may_initialize_for_a_minute() -> None:
    begun: Looks = [(0.0, Gone()), (0.5, ACTIVE), (1.0, INITIALIZING)]  # another user's
    assert after(*begun, (61.0, INITIALIZING)).state == "ready"
    too_long = after(*begun, (61.1, INITIALIZING))
    assert too_long.state == "failed"
    assert "initializing for more than 60 s" in too_long.why
    assert after(*begun, (61.1, INITIALIZING), (62, ACTIVE)).state == "ready"
    assert after(*begun, (30, ACTIVE), (62, INITIALIZING)).state == "ready"
    assert after(*begun, (30, SILENT), (62, INITIALIZING)).state == "starting"


def test_a_first_server_is_waited_for_with_short_looks_until_it_is_active() -> None:
    begun: Looks = [(0.0, Gone()), (1.0, INITIALIZING)]
    watch = after(*begun)
    assert (watch.state, watch.why) == ("starting", "its server is initializing")
    assert watch.pause_seconds(1.0, longest=3.0) == 0.5
    assert after(*begun, (2.0, ACTIVE)).state == "ready"
    assert after(*begun, (2.0, ACTIVE)).pause_seconds(2.0, longest=3.0) == 3.0
    assert after(*begun, (62.0, INITIALIZING)).state == "failed"


def test_without_a_server_a_daemon_is_not_ready_and_is_to_start_one() -> None:
    watch, actions = watched((0, Gone()), (1, ACTIVE), (4, UNSERVED))
    assert (watch.state, actions[-1]) == ("failed", "serve")
    assert "no MPS server holds the GPU" in watch.why
    assert after((0, Gone()), (1, ACTIVE), (4, UNSERVED), (5, INITIALIZING)).state == "starting"
    assert after((0, Gone()), (1, ACTIVE), (4, UNSERVED), (5, ACTIVE)).state == "ready"


def test_why_no_server_starts_is_said_until_one_does_and_each_look_tries_again() -> None:
    failed = Answered({}, fault="no MPS server can be started: out of memory")
    looks: Looks = [(0, Gone()), (1, failed), (4, UNSERVED), (4, failed), (7, UNSERVED)]
    watch, actions = watched(*looks)
    assert actions == ["start", "wait", "serve", "wait", "serve"]
    assert (watch.state, watch.why) == ("failed", failed.fault)
    assert after(*looks, (8, Gone()), (9, Gone()), (10, UNSERVED)).why != failed.fault  # it is another daemon


def test_a_limit_that_is_not_kept_is_a_fault_until_it_is() -> None:
    looks: Looks = [(0, Gone()), (1, ACTIVE), (2, Answered({1: "ACTIVE"}, fault="it does not keep its limits"))]
    watch, actions = watched(*looks)
    assert (watch.state, watch.why, actions[-1]) == ("failed", "it does not keep its limits", "wait")
    assert after(*looks, (3, ACTIVE)).state == "ready"
    assert after(*looks, (3, Answered({1: "FAULT"}, fault="no answer"))).state == "fault"


def test_what_blocks_the_gpu_does_not_end_its_daemon() -> None:
    watch, actions = watched((0, Gone()), (1, FINE), *((float(now), Blocked("lost")) for now in range(2, 100)))
    assert "kill" not in actions
    assert (watch.state, watch.why) == ("failed", "lost")
