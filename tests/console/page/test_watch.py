"""One look for all who ask, none while nobody does, and answers that are kept for a while."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pytest

import console.page.watch
from console.page.answers import Answers
from console.page.watch import Watch
from console.seen import Seen


class Cluster:
    """Counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0
        self.error: Exception | None = None

    def see(self) -> Seen:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return Seen(context="here", at=f"2026-01-01T00:00:{self.looks:02}+00:00")


@contextmanager
def watching(cluster: Cluster) -> Iterator[Watch]:
    watch = Watch(cluster.see, context="here")
    watch.start()
    try:
        yield watch
    finally:
        assert watch.close(5)


def test_nobody_is_asked_before_somebody_asks() -> None:
    cluster = Cluster()
    with watching(cluster):
        time.sleep(0.2)
    assert cluster.looks == 0


def test_all_who_ask_at_once_get_one_look() -> None:
    cluster = Cluster()
    with watching(cluster) as watch, ThreadPoolExecutor(8) as threads:
        sights = [*threads.map(lambda _: watch.newest(), range(8))]
    assert {one.number for one in sights} == {1}
    assert cluster.looks == 1


def test_it_looks_again_while_somebody_asks_and_rests_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.page.watch, "EVERY_SECONDS", 0.05)
    monkeypatch.setattr(console.page.watch, "IDLE_SECONDS", 0.3)
    cluster = Cluster()
    with watching(cluster) as watch:
        while watch.newest().number < 3:
            time.sleep(0.02)
        time.sleep(0.5)
        rested = cluster.looks
        time.sleep(0.3)
        assert cluster.looks == rested
        assert watch.newest().number >= rested


def test_a_look_that_fails_leaves_what_was_seen_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.page.watch, "EVERY_SECONDS", 0.02)
    cluster = Cluster()
    with watching(cluster) as watch:
        first = watch.newest()
        cluster.error = RuntimeError("can't start new thread")
        while not watch.newest().seen.unseen:
            time.sleep(0.02)
        broken = watch.newest().seen
        cluster.error = None
        while watch.newest().seen.unseen:
            time.sleep(0.02)
    assert broken.at >= first.seen.at
    assert [one.sentence for one in broken.unseen] == ["the cluster: RuntimeError: can't start new thread"]


def test_an_answer_is_asked_for_once_and_again_when_it_is_old() -> None:
    numbers = count(1)
    answers: Answers[str, int] = Answers(lambda _: next(numbers), seconds=1)
    assert [answers.get("a"), answers.get("a"), answers.get("b")] == [1, 1, 2]
    time.sleep(1.05)
    assert answers.get("a") == 3


def test_only_the_last_questions_are_kept() -> None:
    asked: list[int] = []
    answers: Answers[int, None] = Answers(asked.append, seconds=60)
    for number in (*range(100), 99, 0):
        answers.get(number)
    assert asked == [*range(100), 0]
