"""Passes, people and time in any order: the webhook is never out of reach, but for what a person breaks."""

from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.certs.manual_changes import HANDS
from tests.certs.rotation_stages import comes_to_rest
from tests.certs.simulated_cluster import Pass, World


class Cluster(RuleBasedStateMachine):
    """Up to three passes at once, people, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @property
    def running(self) -> list[Pass]:
        return [one for one in self.world.passes if not one.dead]

    @precondition(lambda self: len(self.running) < 3)
    @rule()
    def a_pass_begins(self) -> None:
        self.world.start()

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 2), calls=st.integers(1, 25))
    def a_pass_goes_on(self, which: int, calls: int) -> None:
        one = self.running[which % len(self.running)]
        for _ in range(calls):
            if not one.dead:
                one.step()

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 2))
    def a_pass_dies(self, which: int) -> None:
        self.running[which % len(self.running)].kill()

    @rule()
    def a_pass_runs(self) -> None:
        self.world.run()

    @rule(seconds=st.sampled_from([1, 30, 300, 601]))
    def a_while_passes(self, seconds: int) -> None:
        self.world.pass_time(timedelta(seconds=seconds))

    @rule(days=st.sampled_from([5, 9, 21, 31, 100, 244, 366]))
    def days_pass(self, days: int) -> None:
        self.world.pass_time(timedelta(days=days))

    @precondition(lambda self: self.world.hands == self.world.repaired)
    @rule(hand=st.sampled_from(sorted(HANDS)))
    def a_person_changes_something(self, hand: str) -> None:
        self.world.by_hand(HANDS[hand])

    def teardown(self) -> None:
        for one in self.running:
            one.kill()
        comes_to_rest(self.world)


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
