"""Moments in the life of an installation, and how it comes to rest after each."""

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

from tests.certs.simulated_cluster import RULES, World

SETTLED = RULES.settle + timedelta(seconds=1)


def nothing(_: World) -> None:
    """Before anything is installed."""


def at_rest(world: World) -> None:
    world.run()
    world.pass_time(SETTLED)


def authority_due(world: World) -> None:
    """A third of the authority's life is left, and less than that of a serving certificate's."""
    world.run()
    for _ in range(24):
        world.pass_time(timedelta(days=10))
        world.run()
    world.pass_time(timedelta(days=4))


def authority_published(world: World) -> None:
    authority_due(world)
    world.run()


def authority_settled(world: World) -> None:
    authority_published(world)
    world.pass_time(SETTLED)


def authority_signs(world: World) -> None:
    authority_settled(world)
    world.run()


def old_authority_gone(world: World) -> None:
    authority_signs(world)
    world.pass_time(SETTLED)


MOMENTS: list[Callable[[World], None]] = [
    nothing,
    at_rest,
    authority_due,
    authority_published,
    authority_settled,
    authority_signs,
    old_authority_gone,
]


@lru_cache
def _made(moment: Callable[[World], None]) -> World:
    world = World()
    moment(world)
    return world


def world_at(moment: Callable[[World], None]) -> World:
    return _made(moment).copy()


def comes_to_rest(world: World) -> None:
    """Whatever happened, a few more passes end with one authority, and nothing more to write."""
    world.run()
    passes, before = 0, -1
    while world.api.writes != before:
        assert not world.excused
        world.pass_time(SETTLED)
        before, passes = world.api.writes, passes + 1
        world.run()
    assert passes <= 5
    assert world.bundle.count(b"BEGIN CERTIFICATE") == 1
