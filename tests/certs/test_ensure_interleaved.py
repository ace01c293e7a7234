"""Passes call by call, with other passes, manual changes and kills in between: the webhook can always be called."""

from collections.abc import Callable

import pytest

from tests.certs.interleavings import all_interleavings
from tests.certs.manual_changes import MANUAL_CHANGES
from tests.certs.rotation_stages import STAGES, assert_converges, cluster_at
from tests.certs.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.exhaustive

each_stage = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)


def steps_of_a_pass(stage: Callable[[SimulatedCluster], None]) -> int:
    cluster = cluster_at(stage)
    one = cluster.start()
    steps = 0
    while not one.dead:
        one.step()
        steps += 1
    return steps


@each_stage
def test_two_passes_at_once_in_every_interleaving_of_their_calls(stage: Callable[[SimulatedCluster], None]) -> None:
    for cluster in all_interleavings(cluster_at(stage)):
        assert_converges(cluster)


@each_stage
def test_a_pass_that_is_killed_before_any_of_its_calls(stage: Callable[[SimulatedCluster], None]) -> None:
    for calls in range(steps_of_a_pass(stage)):
        cluster = cluster_at(stage)
        one = cluster.start()
        for _ in range(calls):
            one.step()
        one.kill()
        cluster.run()
        assert_converges(cluster)


def changed_by(change: str, stage: Callable[[SimulatedCluster], None]) -> set[str]:
    """Return the names of the objects that *change* changes."""
    cluster, before = cluster_at(stage), cluster_at(stage).api.objects
    cluster.change_manually(MANUAL_CHANGES[change])
    return {name for name in {*before, *cluster.api.objects} if cluster.api.objects.get(name) != before.get(name)}


@pytest.mark.parametrize("change", MANUAL_CHANGES)
@pytest.mark.parametrize("stage", STAGES[1:], ids=lambda stage: stage.__name__)
def test_a_person_changes_something_between_any_two_calls_of_a_pass(
    stage: Callable[[SimulatedCluster], None], change: str
) -> None:
    changed = changed_by(change, stage)
    for calls in range(steps_of_a_pass(stage)):
        cluster = cluster_at(stage)
        one = cluster.start()
        done = None
        for _ in range(calls):
            done = one.next_call
            one.step()
        if done and done.verb == "get" and done.name not in changed:
            continue  # the same as one call earlier
        cluster.change_manually(MANUAL_CHANGES[change])
        while not one.dead:
            one.step()
        assert_converges(cluster)
