"""Passes call by call, with others, people and death in between: the webhook is never out of reach."""

from collections.abc import Callable

import pytest

from tests.certs.interleavings import all_schedules
from tests.certs.manual_changes import HANDS
from tests.certs.rotation_stages import MOMENTS, comes_to_rest, world_at
from tests.certs.simulated_cluster import World

each_moment = pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.__name__)


def steps_of_a_pass(moment: Callable[[World], None]) -> int:
    world = world_at(moment)
    one = world.start()
    steps = 0
    while not one.dead:
        one.step()
        steps += 1
    return steps


@each_moment
def test_two_passes_at_once_in_every_order_of_their_calls(moment: Callable[[World], None]) -> None:
    for world in all_schedules(world_at(moment)):
        comes_to_rest(world)


@each_moment
def test_a_pass_that_dies_before_any_of_its_calls(moment: Callable[[World], None]) -> None:
    for calls in range(steps_of_a_pass(moment)):
        world = world_at(moment)
        one = world.start()
        for _ in range(calls):
            one.step()
        one.kill()
        world.run()
        comes_to_rest(world)


def changed_by(hand: str, moment: Callable[[World], None]) -> set[str]:
    """The names of the objects that differ afterwards."""
    world, before = world_at(moment), world_at(moment).api.objects
    world.by_hand(HANDS[hand])
    return {name for name in {*before, *world.api.objects} if world.api.objects.get(name) != before.get(name)}


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("moment", MOMENTS[1:], ids=lambda moment: moment.__name__)
def test_a_person_changes_something_between_any_two_calls_of_a_pass(moment: Callable[[World], None], hand: str) -> None:
    changed = changed_by(hand, moment)
    for calls in range(steps_of_a_pass(moment)):
        world = world_at(moment)
        one = world.start()
        done = None
        for _ in range(calls):
            done = one.next_call
            one.step()
        if done and done.verb == "get" and done.name not in changed:
            continue  # the same as one call earlier
        world.by_hand(HANDS[hand])
        while not one.dead:
            one.step()
        comes_to_rest(world)
