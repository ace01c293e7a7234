"""
These tests take over the cluster of KUBECONFIG, so they run only where someone asks for this directory: `make
cluster-test`. One installation serves them all; a test that needs another overlay says so, and the next one that needs
the simulated GPUs gets them back.

In the end all is removed, which takes most of a minute; where GPU_SHARE_CLUSTER_GOES says that the cluster itself will
be, only what is on its node is.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.attempts import RULES
from tests.cluster.cluster import Cluster, NoClusterError, eventually, loader, need_cluster
from tests.cluster.devices import device_classes
from tests.cluster.image import archive, load
from tests.cluster.installation import SIMULATED, Installation
from tests.cluster.node import Node
from tests.cluster.pods import Place, pod, remove_all
from tests.image.debian import NoBuilderError

HERE = Path(__file__).parent
# Namespaces of tests, and the policies that they have.
POLICIES = {
    "attach-node": "mps: {attach: node}",
    "attach-pod": "mps: {attach: pod}",
    "attach-auto": "mps: {attach: auto}",
    "on-trial": "mode: warn",
    **{name: rules for rules, name in RULES.items()},
}
_GOES = bool(os.environ.get("GPU_SHARE_CLUSTER_GOES"))
_FIRST_POD = pytest.StashKey[float]()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = (Path(argument.partition("::")[0]).resolve() for argument in config.args)
    asked_for = any(path.is_relative_to(HERE) for path in named)
    return True if collection_path.name.startswith("test_") and not asked_for else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _FIRST_POD in config.stash:
        seconds = config.stash[_FIRST_POD]
        terminalreporter.write_line(f"kubectl apply to first pod with a share running: {seconds:.1f} s (goal: 10 s)")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Give a cluster that has the image and nothing of ours."""
    try:
        need_cluster()
        with archive() as image:
            load(loader(), image)
    except (NoClusterError, NoBuilderError) as reason:
        pytest.skip(f"nothing was run on a cluster: {reason}")
    here = Cluster()
    yield here
    if not _GOES:
        remove_all(here)
    here.api.close()


@pytest.fixture(scope="session")
def node(cluster: Cluster) -> Iterator[Node]:
    """Give the node's own side: its files and processes."""
    with Node.reached(cluster) as node:
        yield node


@pytest.fixture(scope="session")
def anywhere(cluster: Cluster, node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Give the means to install, and see in the end that nothing is left."""
    installation = Installation(cluster, tmp_path_factory.mktemp("tree"))
    installation.write_tree()
    installation.write_policies(**POLICIES)
    try:
        yield installation
    finally:
        _remove_from_node(cluster, node) if _GOES else _remove_all(cluster, node, installation)


@pytest.fixture(scope="session")
def first(anywhere: Installation, pytestconfig: pytest.Config) -> Installation:
    """Install for the first time, and measure how long a user waits for a pod."""
    place = Place.make(anywhere.cluster, "first")
    begin = time.monotonic()
    anywhere.apply(SIMULATED)
    eventually(lambda: place.create(pod("0.2")).ok, what="a pod with a share is admitted")
    place.running("model")
    pytestconfig.stash[_FIRST_POD] = time.monotonic() - begin
    anywhere.wait_until_ready()
    place.remove()
    return anywhere


@pytest.fixture
def installed(first: Installation) -> Installation:
    """Give the installation with simulated GPUs."""
    first.use(SIMULATED)
    return first


@pytest.fixture(scope="module")
def classes(first: Installation) -> Iterator[None]:
    """Have what doctor expects of a cluster whose policies have a namespace by DRA, as those of these tests have."""
    driver = "manifests/overlays/dra/driver"
    policies = f"-f {driver}/admission-policy-claims.yaml -f {driver}/admission-policy-slices.yaml"
    with device_classes(first):
        first.run(f"kubectl apply {policies}")
        yield
        first.run(f"kubectl delete {policies}")


@pytest.fixture
def place(installed: Installation) -> Iterator[Place]:
    """Give a namespace for this test."""
    made = Place.make(installed.cluster)
    yield made
    made.remove()


def _remove_all(cluster: Cluster, node: Node, installation: Installation) -> None:
    remove_all(cluster, keep=node.place.name)
    if installation.overlay:
        installation.uninstall()
    node.clean()
    eventually(lambda: "gpu-share" not in cluster.run("kubectl get namespaces -o name"), what="the namespace has gone")


def _remove_from_node(cluster: Cluster, node: Node) -> None:
    cluster.run("kubectl -n gpu-share delete daemonset --all --cascade=foreground")  # what ends writes no more
    node.clean()
