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


def test_a_difference_that_certificates_allow_for_holds_nothing_up(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    ensure(cluster, SETTINGS, clock=lambda: NOW + timedelta(minutes=4))
    assert {CA_SECRET, SERVING_SECRET} <= server.objects.keys()


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
