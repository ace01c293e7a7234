"""What a pod is told of its cluster."""

from pathlib import Path

import pytest

from program.own_cluster import own_namespace

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize(
    ("environment", "files", "namespace"),
    [
        (IN_A_POD, {"token": "t", "namespace": "mine\n"}, "mine"),
        (IN_A_POD | {"POD_NAMESPACE": "said"}, {"token": "t", "namespace": "mine"}, "said"),
        (IN_A_POD, {"token": "t"}, "default"),
        (IN_A_POD, {"token": "t", "namespace": "\n"}, "default"),
        (IN_A_POD, {"namespace": "mine"}, "default"),
        ({"POD_NAMESPACE": "said"}, {"token": "t", "namespace": "mine"}, "default"),
    ],
)
def test_the_namespace_of_a_pod_is_its_own(
    tmp_path: Path, environment: dict[str, str], files: dict[str, str], namespace: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert own_namespace(environment, tmp_path) == namespace
