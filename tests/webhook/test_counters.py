"""Counts in shared memory: none is lost, and the memory is bounded whatever is counted."""

import os
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.counters import BOUNDS, MOST_LABELS, OTHER, Page, Pages

GRANTED = ("granted", "", "team-a")


def in_a_worker(page: Page, *labels: tuple[str, str, str]) -> int:
    """Count in a process of its own; its PID."""
    pid = os.fork()
    if pid == 0:
        page.take()
        for one in labels:
            page.add(one, 0.001)
        page.tell(certificate_expires=1000.0 + len(labels), lines_lost=len(labels))
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_what_workers_count_at_once_and_one_after_another_is_added_up() -> None:
    pages = Pages()
    first = pages.free(set())
    one = in_a_worker(first, GRANTED, ("denied", "ShareMalformed", "team-a"))
    pages.give(first, one)
    second = pages.free({one})
    assert second is not first
    two = in_a_worker(second, GRANTED)
    pages.give(second, two)
    assert pages.free({two}) is first  # whose worker has ended
    in_a_worker(first, GRANTED, GRANTED)
    counted = pages.counted()
    assert counted.reviews == {GRANTED: 4, ("denied", "ShareMalformed", "team-a"): 1}
    assert counted.seconds.total == pytest.approx(0.005)
    assert counted.lines_lost == 5


def test_of_several_certificates_the_first_that_expires_counts_and_none_of_a_worker_that_has_ended() -> None:
    pages = Pages()
    for pid in (1, 2, 3):
        page = pages.free({1, 2, 3})
        page.take()
        page.tell(certificate_expires=1000.0 * pid, lines_lost=0)
        pages.give(page, pid)
    assert pages.counted().certificate_expires == 1000.0
    pages.free({2, 3})
    assert pages.counted().certificate_expires == 2000.0


def test_before_anything_is_counted_there_is_nothing() -> None:
    counted = Pages().counted()
    assert (counted.reviews, counted.lines_lost, counted.certificate_expires) == ({}, 0, None)
    assert counted.seconds.buckets[-1] == (inf, 0)


def test_more_labels_than_there_is_room_for_are_counted_together_and_the_first_stay() -> None:
    page = Page()
    page.take()
    for number in range(MOST_LABELS + 500):
        page.add(("granted", "", f"team-{number}"), 0.001)
        page.add(("granted", "", "team-0"), 0.001)
    reviews = page.reviews()
    assert len(reviews) == MOST_LABELS + 1
    assert (reviews[OTHER], reviews["granted", "", "team-0"]) == (500, MOST_LABELS + 501)
    page.take()
    page.add(("granted", "", "one more"), 0.001)
    assert page.reviews()[OTHER] == 501


def test_a_label_that_is_too_long_counts_with_the_others() -> None:
    page = Page()
    page.add(("granted", "", "é" * 300), 0.001)
    page.add(("granted", "", "é" * 300), 0.001)
    assert page.reviews() == {OTHER: 2}


@pytest.mark.parametrize(("seconds", "place"), [(0, 0), (0.0001, 0), (0.00011, 1), (1.0, 9), (1.1, 10), (inf, 10)])
def test_a_review_is_in_the_first_bucket_that_holds_it(seconds: float, place: int) -> None:
    page = Page()
    page.add(GRANTED, seconds)
    assert page.buckets == [int(number == place) for number in range(len(BOUNDS) + 1)]


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30)), max_size=20))
def test_any_labels_are_read_back(labels: list[tuple[str, str, str]]) -> None:
    page = Page()
    for one in labels:
        page.add(one, 0.001)
    assert sum(page.reviews().values()) == len(labels)
