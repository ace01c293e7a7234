"""The overlay for DRA, installed once for all tests of it."""

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.dra.shares import resource_of
from tests.cluster.installation import DRA, SIMULATED, Installation
from tests.cluster.node import Kubelet
from tests.cluster.pods import Place


@pytest.fixture(scope="package")
def by_dra(first: Installation, cluster: Cluster) -> Iterator[Installation]:
    """Install the overlay, on clusters whose Kubernetes can."""
    version = cluster.api.get("/version")
    if (int(version["major"]), int(version["minor"].rstrip("+"))) < (1, 36):
        pytest.skip("DRA needs Kubernetes 1.36")
    first.use_dra(DRA)
    eventually(
        lambda: resource_of("0.2", cluster) == "gpu-share.dev/share-200m", seconds=120, what="the policy is there"
    )
    yield first
    first.use(SIMULATED)
    first.leave_dra()


@pytest.fixture
def here(by_dra: Installation) -> Iterator[Place]:
    """Give a namespace for this test, on an installation as it should be."""
    by_dra.use_dra(DRA)
    made = Place.make(by_dra.cluster)
    yield made
    made.remove()
    eventually(lambda: not by_dra.cluster.api.get("/apis/resource.k8s.io/v1/resourceclaims")["items"], what="no claims")


@pytest.fixture
def kubelet() -> Iterator[Kubelet]:
    found = Kubelet.here()
    if found is None:
        pytest.skip("the kubelet of this cluster cannot be stopped from here: its processes are not this machine's")
    yield found
    found.run()
