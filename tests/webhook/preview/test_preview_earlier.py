"""Pods that were granted vGPUs of an earlier number and still wait are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.policies.pods import container, pod
from tests.webhook.commands import preview

GRANT = (
    '{"policy":"_default","strategy":"mps","attach":"node","resource":"gpu-share.dev/vgpu",'
    '"containers":{"main":{"vgpus":2,"share":"0.2","of":10}}}'
)
NAMED = '"main" was granted 2 of 10 vGPUs, and a GPU is divided into 20 now: while the pod is Pending, a node would'


def granted(grant: str = GRANT, **status: Any) -> str:
    limits = {"limits": {"gpu-share.dev/vgpu": "2"}}
    made = pod("0.2", container(resources=limits))
    made["metadata"]["annotations"]["gpu-share.dev/grant"] = grant
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [{**made, "status": status}]})


@pytest.fixture
def twenty(tmp_path: Path) -> Path:
    (tmp_path / "_cluster.yaml").write_text("vgpusPerGpu: 20\n")
    return tmp_path


@pytest.mark.parametrize("status", [{}, {"phase": "Pending"}])
def test_a_pod_that_waits_is_named_with_both_numbers(twenty: Path, status: dict[str, str]) -> None:
    said = preview(granted(**status), "--policies", twenty, code=1).stdout
    assert f"Warning: {NAMED}" in said
    assert "give it 2 of 20: delete it, and it is granted anew." in said


def test_the_other_outputs_name_it_on_stderr(twenty: Path) -> None:
    assert f"warning: {NAMED}" in preview(granted(), "--policies", twenty, "-o", "diff", code=1).stderr


def test_a_pod_that_runs_keeps_what_it_has_and_one_of_this_number_gets_it(twenty: Path) -> None:
    assert NAMED not in preview(granted(phase="Running"), "--policies", twenty, code=1).stdout
    (twenty / "_cluster.yaml").write_text("vgpusPerGpu: 10\n")
    assert "was granted" not in preview(granted(), "--policies", twenty).stdout


def test_a_pod_whose_image_comes_holds_what_its_node_gave_it(twenty: Path) -> None:
    on_node = json.loads(granted(phase="Pending"))
    on_node["items"][0]["spec"]["nodeName"] = "gpu-0"
    assert "was granted" not in preview(json.dumps(on_node), "--policies", twenty, code=1).stdout


def test_a_pod_template_waits_for_nothing(twenty: Path) -> None:
    (one,) = json.loads(granted())["items"]
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it"}, "spec": {"template": one}}
    assert "was granted" not in preview(json.dumps(template), "--policies", twenty, code=1).stdout


def test_a_device_with_a_number_of_its_own_is_judged_by_that(tmp_path: Path) -> None:
    file = tmp_path / "_cluster.yaml"
    of_t4 = GRANT.replace("dev/vgpu", "dev/vgpu-model-t4").replace('"of":10', '"of":4')
    file.write_text("nodes: [{device: t4, vgpusPerGpu: 4}]\n")
    assert "was granted" not in preview(granted(of_t4), "--policies", tmp_path).stdout
    file.write_text("nodes: [{device: t4, vgpusPerGpu: 5}]\n")
    said = preview(granted(of_t4), "--policies", tmp_path).stdout
    assert '"main" was granted 2 of 4 vGPUs, and a GPU is divided into 5 now' in said


@pytest.mark.parametrize(
    "grant",
    [
        "",
        "{",
        "[]",
        GRANT.replace("10", '"10"'),
        GRANT.replace(":2,", f":{'9' * 4000},"),
        GRANT.replace("dev/vgpu", "dev/gpu"),
        "[" * 9999,
    ],
)
def test_what_no_webhook_has_granted_is_not_believed(twenty: Path, grant: str) -> None:
    assert "was granted" not in preview(granted(grant), "--policies", twenty, code=1).stdout
