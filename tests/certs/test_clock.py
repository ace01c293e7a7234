"""A clock that is wrong here, or on the API server."""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from certs.cluster import Cluster
from certs.ensure import ensure
from certs.errors import ClusterError
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION
from tests.certs.rotation_states import NOW
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.certs.simulated_cluster import SETTINGS, configuration


@pytest.fixture
def server() -> SimulatedApiServer:
    server = SimulatedApiServer(date=format_datetime(NOW, usegmt=True))
    server.put(WEBHOOK_CONFIGURATION, configuration())
    return server


@pytest.mark.parametrize("ahead", [timedelta(days=400), timedelta(days=25), timedelta(minutes=-6)])
def test_nothing_is_written_by_a_clock_that_the_api_server_does_not_share(
    server: SimulatedApiServer, cluster: Cluster, ahead: timedelta
) -> None:
    ensure(cluster, SETTINGS, clock=lambda: NOW)
    del server.objects[SERVING_SECRET]  # so that there is something to write
    before = dict(server.objects)
    with pytest.raises(ClusterError, match="here and 2026-05-01 12:00 on the API server, so nothing is written"):
        ensure(cluster, SETTINGS, clock=lambda: NOW + ahead)
    assert server.objects == before


def test_not_even_the_first_ca_is_written_by_such_a_clock(server: SimulatedApiServer, cluster: Cluster) -> None:
    server.objects.clear()
    with pytest.raises(ClusterError, match="so nothing is written"):
        ensure(cluster, SETTINGS, clock=lambda: NOW + timedelta(days=400))
    assert server.objects == {}


def test_a_difference_that_certificates_allow_for_holds_nothing_up(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    ensure(cluster, SETTINGS, clock=lambda: NOW + timedelta(minutes=4))
    assert {CA_SECRET, SERVING_SECRET} <= server.objects.keys()


def test_the_settle_time_does_not_shrink_by_clocks_that_differ_as_much_as_they_may(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    ensure(cluster, SETTINGS, clock=lambda: NOW)
    due = NOW + timedelta(days=244)

    def passed(after: timedelta, *, clock: timedelta) -> tuple[object, bool]:
        """Make a pass; the serving certificate, and whether an old CA is left."""
        server.date = format_datetime(due + after, usegmt=True)
        ensure(cluster, SETTINGS, clock=lambda: due + after + clock)
        return server.objects[SERVING_SECRET]["data"]["tls.crt"], "old.crt" in server.objects[CA_SECRET]["data"]

    behind, ahead = timedelta(minutes=-4), timedelta(minutes=4)
    first = passed(timedelta(days=-10), clock=behind)
    assert passed(timedelta(), clock=behind) == (first[0], True)
    assert passed(timedelta(minutes=9), clock=ahead) == (first[0], True)
    second = passed(timedelta(minutes=10), clock=behind)
    assert (second[0] != first[0], second[1]) == (True, True)
    assert passed(timedelta(minutes=19), clock=ahead) == second
    assert passed(timedelta(minutes=20), clock=behind) == (second[0], False)


@pytest.mark.parametrize(
    "date",
    [
        "",
        "soon",
        "Fri, 01 May 2020 12:00:00 -0000",
        "Fri, 01 May 99999999999 12:00:00 GMT",
        "Fri, 01 May 2026 12:00:00 +99999999999",
    ],
)
def test_an_api_server_that_does_not_say_the_time_is_believed_to_have_ours(
    server: SimulatedApiServer, cluster: Cluster, date: str
) -> None:
    server.date = date
    ensure(cluster, SETTINGS, clock=lambda: NOW)
    assert {CA_SECRET, SERVING_SECRET} <= server.objects.keys()
