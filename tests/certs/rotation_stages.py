"""Stages of an installation and of a rotation of its CA: what happens to a cluster in the stage before."""

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

from tests.certs.simulated_cluster import SETTINGS, SimulatedCluster

SETTLED = SETTINGS.settle + timedelta(seconds=1)


def not_installed(_: SimulatedCluster) -> None:
    """Before anything is installed."""


def installed_and_settled(cluster: SimulatedCluster) -> None:
    cluster.run()
    cluster.pass_time(SETTLED)


def ca_due(cluster: SimulatedCluster) -> None:
    """A third of the CA's lifetime is left, and less of the serving certificate's."""
    for _ in range(24):
        cluster.pass_time(timedelta(days=10))
        cluster.run()
    cluster.pass_time(timedelta(days=4))


def new_ca_published(cluster: SimulatedCluster) -> None:
    cluster.run()


def new_ca_settled(cluster: SimulatedCluster) -> None:
    cluster.pass_time(SETTLED)


def new_ca_issues(cluster: SimulatedCluster) -> None:
    cluster.run()


def old_ca_unused(cluster: SimulatedCluster) -> None:
    cluster.pass_time(SETTLED)


STAGES: list[Callable[[SimulatedCluster], None]] = [
    not_installed,
    installed_and_settled,
    ca_due,
    new_ca_published,
    new_ca_settled,
    new_ca_issues,
    old_ca_unused,
]


@lru_cache
def _made(stage: Callable[[SimulatedCluster], None]) -> SimulatedCluster:
    number = STAGES.index(stage)
    cluster = cluster_at(STAGES[number - 1]) if number else SimulatedCluster()
    stage(cluster)
    return cluster


def cluster_at(stage: Callable[[SimulatedCluster], None]) -> SimulatedCluster:
    return _made(stage).copy()


def assert_converges(cluster: SimulatedCluster) -> None:
    """Assert that a few more passes leave one CA in the CA bundle, and nothing to write."""
    cluster.run()
    passes, before = 0, -1
    while cluster.api.writes != before:
        assert not cluster.excused
        cluster.pass_time(SETTLED)
        before, passes = cluster.api.writes, passes + 1
        cluster.run()
    assert passes <= 5
    assert cluster.bundle.count(b"BEGIN CERTIFICATE") == 1
