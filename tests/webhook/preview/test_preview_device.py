"""What `preview` says of shares of GPUs that `nodes` divides by a number of its own."""

import json
from pathlib import Path

import pytest

from tests.policies.pods import pod
from tests.webhook.commands import preview


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    (tmp_path / "_cluster.yaml").write_text(
        'nodes:\n- {model: "*T4*", device: t4, vgpusPerGpu: 4}\n- {model: "*L4*", allocation: dra, vgpusPerGpu: 4}\n'
    )
    (tmp_path / "_default.yaml").write_text("devices: [gpu, t4]\n")
    (tmp_path / "by-dra.yaml").write_text("allocation: dra\n")
    return tmp_path


def said(policies: Path, namespace: str = "team", **annotations: str) -> list[str]:
    asks = json.dumps(pod("0.2", annotations={f"gpu-share.dev/{key}": value for key, value in annotations.items()}))
    return preview(asks, "--policies", policies, "--namespace", namespace, "-o", "explain").stdout.splitlines()


def test_a_device_is_counted_by_its_own_number(policies: Path) -> None:
    lines = said(policies, device="t4")
    assert "    0.2 x 4 vGPUs per GPU = 0.8, rounded up to 1: 1 x gpu-share.dev/vgpu-model-t4." in lines
    assert (
        "  Its shares are of GPUs that nodes of _cluster.yaml call t4, and of no others (devices: gpu, t4, "
        "_default.yaml:1)." in lines
    )
    assert '  Warning: "main": 0.2 of a GPU is 0.8 of 4 vGPUs, rounded up to 1' in lines


def test_a_pod_without_a_device_is_counted_by_that_of_the_cluster(policies: Path) -> None:
    lines = said(policies)
    assert "    0.2 x 10 vGPUs per GPU = 2: 2 x gpu-share.dev/vgpu." in lines
    assert any("of GPUs without a device of their own" in line for line in lines)


def test_by_dra_a_device_has_sizes_of_its_own_and_gpus_that_have_not_a_pods_size_are_named(policies: Path) -> None:
    of_device = said(policies, "by-dra", device="t4")
    assert any("rounded up to 1: 1 x gpu-share.dev/share-250m-model-t4." in line for line in of_device)
    assert not any("takes it" in line for line in of_device)
    lines = said(policies, "by-dra")
    assert any("= 2: 1 x gpu-share.dev/share-200m." in line for line in lines)
    assert "  No GPU of nodes[1] (4 vGPUs) takes it: they have other sizes." in lines
