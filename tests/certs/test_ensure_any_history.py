"""Passes, manual changes and time in any order: the webhook can always be called, unless a person breaks it."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.certs.manual_changes import MANUAL_CHANGES
from tests.certs.rotation_stages import assert_converges
from tests.certs.simulated_cluster import Pass, SimulatedCluster

pytestmark = pytest.mark.exhaustive


class AnyHistory(RuleBasedStateMachine):
    """Up to three passes at once, manual changes, and time."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = SimulatedCluster()

    @property
    def running(self) -> list[Pass]:
        return [one for one in self.cluster.passes if not one.dead]

    @precondition(lambda self: len(self.running) < 3)
    @rule()
    def a_pass_begins(self) -> None:
        self.cluster.start()

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 2), calls=st.integers(1, 25))
    def a_pass_continues(self, which: int, calls: int) -> None:
        one = self.running[which % len(self.running)]
        for _ in range(calls):
            if not one.dead:
                one.step()

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 2))
    def a_pass_is_killed(self, which: int) -> None:
        self.running[which % len(self.running)].kill()

    @rule()
    def a_pass_runs(self) -> None:
        self.cluster.run()

    @rule(seconds=st.sampled_from([1, 30, 300, 601]))
    def a_while_passes(self, seconds: int) -> None:
        self.cluster.pass_time(timedelta(seconds=seconds))

    @rule(days=st.sampled_from([5, 9, 21, 31, 100, 244, 366]))
    def days_pass(self, days: int) -> None:
        self.cluster.pass_time(timedelta(days=days))

    @precondition(lambda self: self.cluster.manual_changes == self.cluster.repaired)
    @rule(change=st.sampled_from(sorted(MANUAL_CHANGES)))
    def a_person_changes_something(self, change: str) -> None:
        self.cluster.change_manually(MANUAL_CHANGES[change])

    def teardown(self) -> None:
        for one in self.running:
            one.kill()
        assert_converges(self.cluster)


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
