"""A serving certificate that has expired, since nobody renewed it: what stops, and who tells it."""

import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from certs.issuer import Pair
from certs.pem import read_ca
from policies.contract import CA_SECRET, SERVING_SECRET
from tests.cluster.cluster import eventually
from tests.cluster.installation import Installation
from tests.cluster.page import console, page_says
from tests.cluster.pages import commands
from tests.cluster.pods import Place, pod
from tests.cluster.scraping import values
from tests.cluster.test_doctor import told
from tests.cluster.test_fragmentation import deployment
from tests.cluster.view import is_well, says, view

log = logging.getLogger(__name__)
pytestmark = pytest.mark.usefixtures("classes")

_EXPIRY = "gpu_share_serving_certificate_expiry_timestamp_seconds"


def expired(installed: Installation) -> Pair:
    """Issue a certificate by the CA of the cluster that ended yesterday."""
    secret = installed.cluster.api.get(f"/api/v1/namespaces/gpu-share/secrets/{CA_SECRET}")["data"]
    authority = read_ca(b64decode(secret["ca.crt"]), b64decode(secret["ca.key"]), now=datetime.now(UTC))
    assert authority is not None
    return authority.issue(["gpu-share-webhook.gpu-share.svc"], now=datetime.now(UTC) - timedelta(days=31))


@contextmanager
def served(installed: Installation, pair: Pair) -> Iterator[None]:
    """Have the webhook serve a certificate that nobody renews."""
    run, path = installed.cluster.run, f"/api/v1/namespaces/gpu-share/secrets/{SERVING_SECRET}"
    run("kubectl -n gpu-share scale deployment gpu-share-certs --replicas=0")
    eventually(lambda: not installed.pods("certs"), what="no pass is made")
    data = {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}
    installed.cluster.api.ask("PATCH", path, {"data": {name: b64encode(pem).decode() for name, pem in data.items()}})
    # The API server does not see it before it connects anew: it keeps connections as long as it uses them.
    run("kubectl -n gpu-share rollout restart deployment/gpu-share-webhook")
    run("kubectl -n gpu-share rollout status deployment/gpu-share-webhook")
    try:
        yield
    finally:
        run("kubectl -n gpu-share scale deployment gpu-share-certs --replicas=1")
        run("kubectl -n gpu-share rollout status deployment/gpu-share-certs")


def test_an_expired_certificate_is_told_by_all_that_it_stops(installed: Installation, place: Place) -> None:
    with served(installed, expired(installed)):
        assert told("certificates", "the webhook's certificate expired at ")["status"] == "failure"
        assert told("webhook-answers", "x509: certificate has expired")["status"] == "failure"
        assert told("renewal", "no pod of gpu-share-certs")["status"] == "warning"
        assert view("doctor").returncode == 1
        assert max(values(installed, "webhook", _EXPIRY)) < time.time()
        place.apply(deployment("0.1"))
        found = says("deploy/model", place.name, "Not created", "failed calling webhook")
        assert "x509: certificate has expired" in found["Not created"]
        assert f"✗ {place.name}/ReplicaSet/model-" in view("top", "--once").stdout
        with console() as page:
            assert "x509: certificate has expired" in page_says(page, "/", f"✗ {place.name}/ReplicaSet/model-")
    begin = time.monotonic()  # nobody hurries the kubelet, which looks at a pod's volumes every 60 to 90 s
    eventually(is_well, seconds=120, what="the webhook is trusted again")
    log.info("the webhook is trusted %.0f s after something renews certificates again", time.monotonic() - begin)
    eventually(lambda: min(values(installed, "webhook", _EXPIRY)) > time.time(), what="each pod serves the new one")
    log.info("every pod of the webhook serves the new certificate after %.0f s", time.monotonic() - begin)
    assert min(values(installed, "certs", "gpu_share_certificate_expiry_timestamp_seconds")) > time.time()
    place.one_running("app=model", seconds=120)
    log.info("the Deployment has its pod after %.0f s", time.monotonic() - begin)


def test_new_pods_of_the_webhook_have_the_renewed_certificate_at_once(installed: Installation, place: Place) -> None:
    with served(installed, expired(installed)):
        told("webhook-answers", "x509: certificate has expired")
    begin = time.monotonic()
    (quicker,) = [line for line in commands("troubleshooting.md", "Certificates") if line.endswith("gpu-share-webhook")]
    installed.run(quicker)
    eventually(lambda: place.create(pod("0.1")).ok, seconds=30, what="a pod with a share is admitted")
    log.info("a pod is admitted %.0f s after the webhook's pods are replaced", time.monotonic() - begin)
