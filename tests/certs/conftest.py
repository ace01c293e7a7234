from collections.abc import Iterator

import pytest
from kubernetes import client

from certs.cluster import Cluster
from certs.rotation import State
from policies.contract import WEBHOOK_CONFIGURATION
from tests.certs.api_transports import over_http
from tests.certs.pass_over_http import PERMISSIONS
from tests.certs.rotation_states import EMPTY, NOW, after_pass
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.certs.simulated_cluster import configuration


@pytest.fixture
def installed() -> State:
    """Return what a first pass leaves at NOW."""
    return after_pass(EMPTY, NOW)[0]


@pytest.fixture
def server() -> SimulatedApiServer:
    server = SimulatedApiServer(permissions=set(PERMISSIONS))
    server.put(WEBHOOK_CONFIGURATION, configuration())
    return server


@pytest.fixture
def cluster(server: SimulatedApiServer) -> Iterator[Cluster]:
    with over_http(server) as url, client.ApiClient(client.Configuration(host=url)) as api:
        yield Cluster(api, namespace="gpu-share")
