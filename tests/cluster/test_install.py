"""What is there once the page's commands have run."""

from tests.cluster.cluster import Cluster
from tests.cluster.installation import VGPU, VGPUS, Installation

POLICIES = ("gpu-share", "gpu-share-changes")


def test_every_node_advertises_its_vgpus(installed: Installation) -> None:
    for node in installed.nodes():
        assert installed.allocatable(node)[VGPU] == VGPUS


def test_the_api_server_finds_nothing_wrong_with_the_types_in_the_admission_policies(
    installed: Installation, cluster: Cluster
) -> None:
    assert installed.overlay
    for name in POLICIES:
        path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}"
        status = cluster.api.get(path)["status"]
        assert status["observedGeneration"] == 1 or status["observedGeneration"] > 0
        assert status["typeChecking"].get("expressionWarnings", []) == []
