"""A pass by the real client against the simulated API server, and what it may do there."""

from datetime import datetime

from certs.cluster import Cluster
from certs.ensure import ensure
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION
from tests.certs.rotation_states import NOW
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.certs.simulated_cluster import SETTINGS

PERMISSIONS = {
    "create secrets",
    f"get secrets {SERVING_SECRET}",
    f"patch secrets {SERVING_SECRET}",
    f"get secrets {CA_SECRET}",
    f"patch secrets {CA_SECRET}",
    f"get mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
    f"patch mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
}


def run(cluster: Cluster, *, now: datetime = NOW) -> None:
    ensure(cluster, SETTINGS, clock=lambda: now)


def emptied(server: SimulatedApiServer) -> None:
    """Empty both Secrets, so that they are patched and not created."""
    for name, kind in ((SERVING_SECRET, "Opaque"), (CA_SECRET, "Opaque")):
        server.put(name, {"type": kind, "data": {"note": "a2VlcCBtZQ=="}, "metadata": {"labels": {"team": "a"}}})
