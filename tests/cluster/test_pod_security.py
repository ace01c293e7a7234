"""Pod Security in a namespace: what it allows of a share, and what it says."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import Installation
from tests.cluster.pods import Place, container, pod
from tests.cluster.test_kinds import has_a_share

ENFORCE = "pod-security.kubernetes.io/enforce"
RESTRICTED = container(
    securityContext={
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
)


@pytest.fixture(params=["baseline", "restricted"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place_of(installed: Installation, cluster: Cluster, level: str) -> Iterator[Callable[[str], Place]]:
    """Give namespaces, by name, that enforce the level."""
    made: list[Place] = []

    def make(name: str) -> Place:
        place = Place.make(cluster, name)
        made.append(place)
        labels = {"metadata": {"labels": {ENFORCE: level}}}
        assert cluster.api.ask("PATCH", f"/api/v1/namespaces/{name}", labels).ok
        # Which of the two webhooks is called follows what the API server has heard of the namespace.
        forbidden = pod(None, container(securityContext={"privileged": True}))
        eventually(lambda: not place.create(forbidden, dry_run=True).ok, what="the API server knows the level")
        return place

    yield make
    for place in made:
        place.empty()
        cluster.run(f"kubectl label namespace {place.name} {ENFORCE}-")
    assert installed.overlay


def test_a_share_attached_in_the_pod_is_denied_and_the_user_is_told_why(
    place_of: Callable[[str], Place], level: str
) -> None:
    denied = place_of("attach-pod").create(pod("0.2", RESTRICTED))
    assert denied.status == 403
    assert f'violates PodSecurity "{level}' in denied.message
    assert "hostIPC" in denied.message
    assert any("gpu-share" in text and "mps.attach" in text for text in denied.warnings)


@pytest.mark.parametrize("name", ["attach-node", "attach-auto"])
def test_a_share_attached_by_the_node_runs(place_of: Callable[[str], Place], name: str) -> None:
    attached_by_the_node = place_of(name)
    made = attached_by_the_node.started(pod("0.2", RESTRICTED))
    assert "hostIPC" not in made["spec"]
    report = attached_by_the_node.report("model")
    assert report.uid == 1000
    has_a_share(report, percent=20, mib=28728)
