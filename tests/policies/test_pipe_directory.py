"""Where the MPS pipes may be, which pods with a share mount and may write to."""

from pathlib import Path
from typing import Any

import pytest

from policies.errors import PolicyError
from policies.reading.store import load
from tests.policies.pods import container, denied, granted, pod

_OF_OTHERS = (
    *("/etc", "/etc/mps", "/usr/share/mps", "/var", "/var/lib/kubelet", "/tmp", "/run", "/run/gpu-share/mps"),
    "/dev/shm",
)


@pytest.mark.parametrize("path", _OF_OTHERS)
def test_the_pipes_are_not_where_no_pod_may_write(tmp_path: Path, path: str) -> None:
    (tmp_path / "_cluster.yaml").write_text(f"mps:\n  pipeDirectory: {path}\n")
    with pytest.raises(PolicyError) as error:
        load(tmp_path)
    (said,) = map(str, error.value.problems)
    said = said.removeprefix(f"{tmp_path}/")
    assert said.startswith(f"_cluster.yaml:2: mps.pipeDirectory: {path} is, holds or lies in what is not for pods to")


@pytest.mark.parametrize("path", ["/tmp/nvidia-mps", "/run/nvidia/mps", "/var/lib/nvidia-mps", "/mps"])
def test_the_pipes_have_a_directory_of_their_own(tmp_path: Path, path: str) -> None:
    (tmp_path / "_cluster.yaml").write_text(f"mps: {{pipeDirectory: {path}}}")
    assert load(tmp_path).cluster.mps.pipe_directory == path


PIPES = {"path": "/tmp/nvidia-mps"}


@pytest.mark.parametrize(
    ("volume", "path", "fits"),
    [
        ({"name": "nvidia-mps", "hostPath": PIPES}, "/tmp/nvidia-mps", True),
        ({"name": "nvidia-mps", "hostPath": {"path": "/tmp/nvidia-mps/"}}, "/tmp/nvidia-mps/", True),
        ({"name": "pipes", "hostPath": PIPES}, "/tmp/nvidia-mps", True),
        ({"name": "cache", "emptyDir": {}}, "/tmp", True),
        ({"name": "nvidia-mps", "emptyDir": {}}, "/cache", False),
        ({"name": "nvidia-mps", "hostPath": {"path": "/srv"}}, "/srv", False),
        ({"name": "cache", "emptyDir": {}}, "/tmp/nvidia-mps", False),
        ({"name": "cache", "emptyDir": {}}, "/tmp/nvidia-mps/", False),
        ({"name": "cache", "emptyDir": {}}, "/tmp//nvidia-mps", False),
        ({"name": "cache", "emptyDir": {}}, "/tmp/./nvidia-mps", False),
    ],
)
def test_nothing_else_may_stand_where_the_pipes_are(volume: dict[str, Any], path: str, *, fits: bool) -> None:
    mounts = [{"name": volume["name"], "mountPath": path}]
    on = pod("0.2", container(volumeMounts=mounts), volumes=[volume])
    if fits:
        granted(on)
    else:
        assert denied(on).code == "ConflictingRequest"
