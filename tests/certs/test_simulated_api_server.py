import json

from policies.contract import WEBHOOK_CONFIGURATION, WEBHOOK_NAME
from tests.certs.pass_over_http import PERMISSIONS
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.certs.simulated_cluster import configuration


def test_the_simulated_api_server_rejects_what_the_real_one_rejects() -> None:
    server = SimulatedApiServer(permissions=PERMISSIONS)
    server.put(WEBHOOK_CONFIGURATION, configuration())
    path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{WEBHOOK_CONFIGURATION}"
    stale = {"metadata": {"resourceVersion": "0"}}
    for kind in ("merge", "strategic-merge"):
        assert server.handle("PATCH", path, f"application/{kind}-patch+json", json.dumps(stale).encode())[0] == 409
    test = [{"op": "test", "path": "/metadata/resourceVersion", "value": "0"}]
    assert server.handle("PATCH", path, "application/json-patch+json", json.dumps(test).encode())[0] == 422
    assert server.handle("PATCH", path, "application/json", b"{}")[0] == 415
    assert server.handle("PATCH", path + "-other", "application/merge-patch+json", b"{}")[0] == 403
    merged = {"webhooks": [{"name": WEBHOOK_NAME, "clientConfig": {"caBundle": "eA=="}}]}
    assert server.handle("PATCH", path, "application/merge-patch+json", json.dumps(merged).encode())[0] == 422
    assert server.handle("DELETE", path, "", b"")[0] == 403
