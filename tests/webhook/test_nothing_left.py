"""A review that is over leaves nothing of its pod behind: reference counts free it, and no collector is waited for."""

import gc
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest

from tests.bench.worst_cases import POLICIES as WORST
from tests.bench.worst_pods import at_the_limits
from tests.bypass.corpus import corpus
from tests.policies.pods import policies
from tests.webhook.reviews import call, debugged
from tests.webhook.test_bounds import dearest
from webhook.review import BadCall, review

pytestmark = pytest.mark.exhaustive

SIZE = 6 * 1024


def left_by(reviews: Callable[[], None]) -> list[object]:
    """Give what only the garbage collector finds; what a thread of another test leaves meanwhile is not there twice."""
    return _collected(reviews) and _collected(reviews)


def _collected(reviews: Callable[[], None]) -> list[object]:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        reviews()
        gc.collect()
        return [*gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def reviewed(on: dict[str, Any], by: Any) -> None:
    for one in (call(on), debugged(on)):
        with suppress(BadCall):
            review(json.dumps(one).encode(), by)


def test_of_no_attempt_at_more_than_a_share_is_anything_left() -> None:
    attempts = corpus()
    by = {rules: policies(rules) for rules in {one.rules for one in attempts}}

    def all_of_them() -> None:
        for one in attempts:
            reviewed(one.pod, by[one.rules])

    assert left_by(all_of_them) == []


@pytest.mark.parametrize("by", [pytest.param(by, id=name or "mps") for name, by in WORST.items()])
def test_of_none_of_the_dearest_pods_is_anything_left(by: Any) -> None:
    def all_of_them() -> None:
        for _, on in chain(dearest(SIZE, by), at_the_limits(SIZE)):
            reviewed(on, by)

    assert left_by(all_of_them) == []
