"""Certificates change, and get lost, while pods are created."""

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import Installation
from tests.cluster.load import load
from tests.cluster.pages import commands
from tests.cluster.pods import Place
from tests.cluster.webhooks import certificates

RESTART = "kubectl -n gpu-share rollout restart"


def renew(cluster: Cluster, installation: Installation, lost: str) -> None:
    """Delete Secrets with the command of the page that ends with *lost*, and make a pass."""
    lines = commands("operations.md", "Certificates")
    (delete,) = [line for line in lines if "delete secret" in line and line.endswith(lost)]
    (make_pass,) = [line for line in lines if line.startswith(RESTART)]
    before = certificates(cluster)
    cluster.run(delete)
    cluster.run(make_pass)

    def changed() -> bool:
        installation.hurry("webhook")
        return not certificates(cluster) & before

    eventually(changed, seconds=120, what="new certificates are served")


def test_no_creation_fails_while_the_serving_certificate_changes(
    installed: Installation, place: Place, cluster: Cluster
) -> None:
    with load(place) as creations:
        renew(cluster, installed, "gpu-share-webhook-tls")
        creations.go_on(100)
    assert creations.failures == []


def test_no_creation_fails_when_both_secrets_are_lost(installed: Installation, place: Place, cluster: Cluster) -> None:
    with load(place) as creations:
        renew(cluster, installed, "gpu-share-webhook-tls gpu-share-authority")
        creations.go_on(100)
    assert creations.failures == []
