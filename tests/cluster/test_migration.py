"""What `gpu-share policy import` and `gpu-share preview --from` print, taken to a cluster."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.cluster import eventually
from tests.cluster.devices import SHIPPED, take_up
from tests.cluster.image import ROOT
from tests.cluster.installation import SIMULATED, VGPU, Installation
from tests.cluster.pods import Place, container, pod
from tests.cluster.webhooks import decisions

DEFAULT = (ROOT / "policies" / "files" / "_default.yaml").read_text()
NVIDIA = """\
version: v1
sharing:
  mps:
    resources:
    - {name: nvidia.com/gpu, replicas: 4}
"""
HAMI = container(resources={"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "35942"}})
MEMORY_MIB = 143771  # of an H200


def printed(*arguments: str, given: str) -> str:
    """Give what a command prints."""
    command = [sys.executable, "-m", "gpu_share", *arguments]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def team(first: Installation) -> Iterator[Place]:
    """Install what the import of NVIDIA's configuration prints; it hands over by variables, as that does."""
    cluster, default, *_ = printed("policy", "import", "-", given=NVIDIA).split("---\n")
    first.write_policies(_cluster=cluster, _default=default)
    try:
        place = take_up(first, SIMULATED, asks=pod("0.25"), namespace="migrated")
        eventually(
            lambda: decisions(first.cluster, pod("0.5"), "migrated") == {False}, what="webhooks know the policies"
        )
        yield place
        place.empty()
    finally:
        first.write_policies(_cluster=SHIPPED, _default=DEFAULT)
        first.apply(SIMULATED)
        first.wait_until_ready()


def test_a_replica_of_nvidias_configuration_is_a_share_and_nobody_has_two(first: Installation, team: Place) -> None:
    (node,) = first.nodes()
    eventually(lambda: 4 <= int(first.allocatable(node)[VGPU]) <= 8, what="two GPUs of four vGPUs, of which some hide")
    team.started(pod("0.25", name="replica"))
    environment = team.report("replica").environment
    assert (environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], environment["GPU_SHARE_FRACTION"]) == ("25", "0.25")
    denied = team.create(pod("0.5", name="two"))
    assert (denied.ok, denied.reason) == (False, "ShareAboveMaximum")


def test_a_pod_of_hami_runs_with_its_part_of_the_memory(team: Place) -> None:
    given = yaml.safe_dump(pod(None, HAMI, name="from-hami"))
    arguments = ("preview", "--from", "hami", "--gpu-memory", f"{MEMORY_MIB}Mi", "-o", "translated", "-")
    team.started(yaml.safe_load(printed(*arguments, given=given)))
    made = team.get("from-hami")
    assert made["metadata"]["annotations"]["gpu-share"] == "0.25"
    assert made["spec"]["containers"][0]["resources"]["limits"] == {VGPU: "1"}
