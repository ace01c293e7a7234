from hypothesis import given
from hypothesis import strategies as st

from plugin.mps.patience import FORGIVEN_RATIO, LOST_SECONDS, SCARCE_SECONDS, SECONDS, Patience

STEP = 0.01


def kept_waiting(patience: Patience, caller: str, *, of_the_time: float, during: float, start: float = 0.0) -> float:
    """Have a caller keep a daemon waiting for a part of the time; when that used its patience up, or infinity."""
    now = start
    while now < start + during:
        now += STEP
        if patience.spend(caller, STEP * of_the_time, now_seconds=now):
            return now - start
    return float("inf")


def test_one_silent_connection_uses_it_up_within_a_second() -> None:
    assert SECONDS < kept_waiting(Patience(), "a", of_the_time=1.0, during=10) < 1.0


def test_many_short_ones_use_it_up_as_one_long_one_does() -> None:
    assert kept_waiting(Patience(), "a", of_the_time=0.5, during=10) < 3.0


def test_who_keeps_it_waiting_for_less_than_is_forgiven_never_does() -> None:
    assert kept_waiting(Patience(), "a", of_the_time=FORGIVEN_RATIO * 0.9, during=1000) == float("inf")


def test_callers_who_take_turns_lose_it_one_after_the_other() -> None:
    patience, now, lost = Patience(), 0.0, set[str]()
    while len(lost) < 5 and now < 60:
        for caller in "abcde":  # each for 0.4 s of every 2
            for _ in range(40):
                now += STEP
                if patience.spend(caller, 0 if caller in lost else STEP, now_seconds=now):
                    lost.add(caller)
    assert lost == {*"abcde"}
    assert now < 5


def test_beside_one_who_has_lost_it_others_have_as_much_as_before() -> None:
    patience = Patience()
    kept_waiting(patience, "a", of_the_time=1.0, during=0.7)
    assert kept_waiting(patience, "b", of_the_time=0.2, during=10, start=0.7) == float("inf")
    kept_waiting(patience, "a", of_the_time=1.0, during=100, start=10)
    assert kept_waiting(patience, "b", of_the_time=0.2, during=10, start=110) == float("inf")


def test_each_caller_has_its_own() -> None:
    patience = Patience()
    kept_waiting(patience, "a", of_the_time=1.0, during=10)
    assert patience.is_lost("a", now_seconds=1.0)
    assert not patience.is_lost("b", now_seconds=1.0)


def test_it_is_back_a_minute_after_the_last_time_and_told_of_once_until_then() -> None:
    patience = Patience()
    used_up = kept_waiting(patience, "a", of_the_time=1.0, during=10)
    assert not patience.spend("a", 1.0, now_seconds=used_up + 1)
    last = used_up + 1
    assert patience.is_lost("a", now_seconds=last + LOST_SECONDS - 1)
    assert not patience.is_lost("a", now_seconds=last + LOST_SECONDS)
    assert patience.spend("a", SECONDS, now_seconds=last + LOST_SECONDS + 1)


@given(st.lists(st.tuples(st.text(max_size=3), st.floats(0, 10), st.floats(0, 100)), max_size=50))
def test_whoever_has_used_it_up_has_waited_for_that_long(spent: list[tuple[str, float, float]]) -> None:
    patience, now, total = Patience(), 0.0, dict[str, float]()
    for caller, seconds, passed in spent:
        now += passed
        total[caller] = total.get(caller, 0.0) + seconds
        patience.spend(caller, seconds, now_seconds=now)
        assert not patience.is_lost(caller, now_seconds=now) or total[caller] >= SCARCE_SECONDS


def test_no_name_of_a_caller_stands_for_all_of_them() -> None:
    patience = Patience()
    kept_waiting(patience, "a", of_the_time=1.0, during=10)
    assert not any(patience.is_lost(name, now_seconds=10.0) for name in ("", "\0", "b"))
    patience.spend("b", 1.0, now_seconds=10.0)
    assert not patience.is_lost("\0", now_seconds=10.0)


def test_any_number_of_callers_takes_no_more_memory_than_those_of_a_minute() -> None:
    patience = Patience()
    for number in range(10_000):
        patience.spend(str(number), 0.001, now_seconds=number)
    assert len(patience._accounts) < 500
