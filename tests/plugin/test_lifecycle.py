from threading import Event, current_thread

import pytest

from plugin.lifecycle import Threads


def test_all_threads_are_ended_and_joined() -> None:
    threads = Threads(on_death=lambda: None)
    ended = Event()
    seen = list[str]()

    def run() -> None:
        ended.wait()
        seen.append(current_thread().name)

    threads.start("one", run, stop=ended.set)
    assert threads.end()
    assert (seen, threads.died) == (["one"], False)


def test_a_thread_that_dies_says_so(caplog: pytest.LogCaptureFixture) -> None:
    told = Event()
    threads = Threads(on_death=told.set)

    def die() -> None:
        raise RuntimeError("died")

    threads.start("one", die, stop=lambda: None)
    assert told.wait(10)
    assert threads.end()
    assert threads.died
    assert caplog.records[0].message == "the plugin failed"


def test_a_thread_that_hangs_is_left_behind_and_said() -> None:
    threads = Threads(on_death=lambda: None)
    release = Event()

    def hang() -> None:
        release.wait()

    threads.start("one", hang, stop=lambda: None, may_hang=True)
    assert not threads.end()
    release.set()


def test_nothing_is_started_once_it_ends() -> None:
    threads = Threads(on_death=lambda: None)
    assert threads.end()
    threads.start("late", lambda: pytest.fail("it ran"), stop=lambda: pytest.fail("it was stopped"))
