"""Another mutating webhook, called before ours or after it, that adds a container before all others."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.issuer import issue_to_directory
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.image import NAME
from tests.cluster.installation import Installation
from tests.cluster.pods import Place, container, pod
from tests.cluster.test_kinds import limits_of

HOST = "injector.injector.svc"
LABEL = "gpu-share.test/injected"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
# The API server calls webhooks in the order of their configurations' names, and ours is gpu-share.
ORDER = {"before": "a-test-injector", "after": "z-test-injector"}


@pytest.fixture(scope="module")
def injector(first: Installation, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the other webhook, and give the CA bundle that it is trusted by."""
    tls = tmp_path_factory.mktemp("injector")
    issue_to_directory(tls, [HOST])
    place = Place.make(cluster, "injector")
    pair = {name: base64.b64encode((tls / name).read_bytes()).decode() for name in ("tls.crt", "tls.key")}
    script = (Path(__file__).parent / "injector.py").read_text()
    probe = {"tcpSocket": {"port": 8443}, "periodSeconds": 1}
    serving = container("main", NAME, command=["python3", "-c", script], readinessProbe=probe)
    serving["volumeMounts"] = [{"name": "tls", "mountPath": "/tls"}]
    on = pod(None, serving, name="injector", volumes=[{"name": "tls", "secret": {"secretName": "tls"}}])
    on["metadata"]["labels"] = {"app": "injector"}
    place.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "data": pair},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "injector"},
            "spec": {"selector": {"app": "injector"}, "ports": [{"port": 443, "targetPort": 8443}]},
        },
        on,
    )
    cluster.run("kubectl -n injector wait pod/injector --for=condition=Ready --timeout=60s")
    yield base64.b64encode((tls / "ca.crt").read_bytes()).decode()
    place.remove()
    assert first.overlay


@pytest.fixture(params=list(ORDER))
def order(request: pytest.FixtureRequest, injector: str, cluster: Cluster) -> Iterator[str]:
    """Have the other webhook called, and give whether that is before ours or after it."""
    name = ORDER[request.param]
    assert cluster.api.ask("POST", CONFIGURATIONS, configuration(name, injector)).ok
    yield request.param
    cluster.api.ask("DELETE", f"{CONFIGURATIONS}/{name}")


@pytest.fixture
def injected(installed: Installation, cluster: Cluster, order: str) -> Iterator[Place]:
    """Give a namespace in which the other webhook is called."""
    place = Place.make(cluster, "", {LABEL: order})
    eventually(
        lambda: names_of(place.create(pod(None), dry_run=True).body) == ["injected", "main"], what="it is called"
    )
    yield place
    place.remove()
    assert installed.overlay


def configuration(name: str, bundle: str) -> Object:
    service = {"namespace": "injector", "name": "injector", "path": "/"}
    return {
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "injector.gpu-share.test",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "reinvocationPolicy": "IfNeeded",
                "clientConfig": {"service": service, "caBundle": bundle},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
                "namespaceSelector": {"matchExpressions": [{"key": LABEL, "operator": "Exists"}]},
            }
        ],
    }


def names_of(on: Object) -> list[str]:
    return [one["name"] for one in on.get("spec", {}).get("containers", [])]


def test_a_pod_with_a_share_is_admitted_beside_another_webhook(injected: Place) -> None:
    answer = injected.create(pod("0.2"), dry_run=True)
    assert answer.ok, answer.message
    assert names_of(answer.body) == ["injected", "main"]


def test_the_share_goes_to_one_container_and_stays_with_the_one_it_was_granted_to(injected: Place, order: str) -> None:
    """A container that is there before ours is called, and is not named, is the first one: a warning says so."""
    answer = injected.create(pod("0.2"), dry_run=True)
    assert answer.ok, answer.message
    chosen = {"before": "injected", "after": "main"}[order]
    assert limits_of(answer.body) == {"injected": "0", "main": "0"} | {chosen: "2"}
    assert any(f'the share is for container "{chosen}"' in text for text in answer.warnings)


def test_the_share_is_for_the_default_container_that_the_pod_names(injected: Place) -> None:
    named = pod("0.2", annotations={"kubectl.kubernetes.io/default-container": "main"})
    answer = injected.create(named, dry_run=True)
    assert answer.ok, answer.message
    assert limits_of(answer.body) == {"injected": "0", "main": "2"}


def test_a_share_for_a_named_container_goes_to_that_one(injected: Place) -> None:
    named = pod(None, annotations={"container.gpu-share.dev/main": "0.2"})
    answer = injected.create(named, dry_run=True)
    assert answer.ok, answer.message
    assert limits_of(answer.body) == {"injected": "0", "main": "2"}
