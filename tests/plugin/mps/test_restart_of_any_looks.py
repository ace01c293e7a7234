"""What holds of a daemon whatever is seen of it, and whenever."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from plugin.mps.answers import ServerState
from plugin.mps.restart_policy import Action, DaemonStatus, step
from plugin.mps.seen import Answered, Blocked, Gone, NoAnswer, NotStarted, Seen, Unreachable, Unread
from tests.plugin.mps.test_restart_policy import LEFT, SILENT, USELESS, Looks

server_states: st.SearchStrategy[ServerState] = st.sampled_from(["ACTIVE", "INITIALIZING", "FAULT", "UNKNOWN"])
looks_of_any_kind: st.SearchStrategy[Looks] = st.lists(
    st.tuples(
        st.integers(0, 100),  # seconds since the look before
        st.one_of(
            st.just(Gone()),
            st.just(NotStarted("no driver")),
            st.just(SILENT),
            st.just(LEFT),
            st.just(USELESS),
            st.builds(Unread, st.just("an answer"), in_use=st.booleans()),
            st.just(Blocked("lost")),
            st.builds(
                Answered,
                st.dictionaries(st.integers(1, 3), server_states, max_size=2),
                fault=st.sampled_from(["", "a limit"]),
                in_vain=st.booleans(),
                in_use=st.booleans(),
            ),
        ),
        st.integers(1, 6),  # times
    ),
    max_size=20,
).map(lambda runs: [(gap, seen) for gap, seen, times in runs for _ in range(times)])


def states(looks: Looks) -> Iterable[tuple[float, Seen, DaemonStatus, Action]]:
    watch, now_seconds = DaemonStatus(), 0.0
    for gap_seconds, seen in looks:
        now_seconds += gap_seconds
        watch, action = step(watch, seen, now_seconds)
        yield now_seconds, seen, watch, action


def is_of_no_use(seen: Seen) -> bool:
    if isinstance(seen, Answered):
        states = set(seen.servers.values())
        if seen.fault and "FAULT" not in states:
            return seen.in_vain and not seen.in_use
        return not seen.in_use and not states <= {"ACTIVE"}
    return isinstance(seen, NoAnswer) or (isinstance(seen, Unread | Unreachable) and not seen.in_use)


def is_asked_for_a_server(seen: Seen) -> bool:
    """Whether what comes of that is what counts."""
    return isinstance(seen, Answered) and not (seen.servers or seen.fault or seen.in_use)


@given(looks_of_any_kind)
def test_a_daemon_is_never_killed_but_after_five_looks_in_a_row_that_found_it_of_no_use(looks: Looks) -> None:
    useless, kinds = 0, set()  # in a row
    for _, seen, _, action in states(looks):
        if is_of_no_use(seen):
            useless += 1
            kinds.add(type(seen))
        elif not is_asked_for_a_server(seen):
            useless, kinds = 0, set()
        if action == "kill":
            assert useless == 5 if Answered not in kinds else useless >= 5  # a server may be initializing for a minute
            useless, kinds = 0, set()


@given(looks_of_any_kind)
def test_ready_is_said_only_of_a_daemon_with_a_server_that_has_just_answered_without_a_fault(
    looks: Looks,
) -> None:
    for _, seen, watch, _ in states(looks):
        if watch.state == "ready":
            assert isinstance(seen, Answered)
            assert seen.servers
            assert not seen.fault
            assert {"FAULT", "UNKNOWN"}.isdisjoint(seen.servers.values())
        assert (watch.why == "") == (watch.state == "ready")


@given(looks_of_any_kind)
def test_no_start_comes_before_its_pause_is_over_and_no_pause_is_longer_than_a_minute(
    looks: Looks,
) -> None:
    due_seconds = 0.0
    for now_seconds, seen, watch, action in states(looks):
        assert watch.due_seconds - now_seconds <= 60
        if action == "start":
            assert isinstance(seen, Gone)
            assert now_seconds >= due_seconds
        if isinstance(seen, NotStarted) or action == "kill":
            assert watch.due_seconds - now_seconds >= 1
        due_seconds = watch.due_seconds
