"""What KubeRay makes of a template: the command line is a shell's text, to which no memory setting is added."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.previewed import made, titles
from webhook.preview.ray import RayTemplate

REQUEST = {"annotations": {"gpu-share": "0.2"}}
OVERWRITES = {"ray.io/overwrite-container-cmd": "true"}
TITLE = "RayCluster ns/it, spec.headGroupSpec.template"
ADDED = "--gpu-memory-utilization=0.2 cannot be added to this command line, add it yourself"
LOWERED = ["vllm", "serve", "m", "--gpu-memory-utilization=0.9"]


def template(**fields: Any) -> dict[str, Any]:
    container = {"name": "ray", "image": "vllm/vllm-openai:v0.11.0", **fields}
    return {"metadata": REQUEST, "spec": {"containers": [container]}}


def ray(kind: str, spec: dict[str, Any], **annotations: str) -> str:
    metadata = {"name": "it", "namespace": "ns", "annotations": annotations}
    return yaml.safe_dump(
        {"apiVersion": "ray.io/v1", "kind": kind, "metadata": metadata, "spec": spec}, sort_keys=False
    )


def cluster(head: dict[str, Any], **annotations: str) -> str:
    return ray("RayCluster", {"headGroupSpec": {"template": head}}, **annotations)


@pytest.mark.parametrize("fields", [{}, {"args": ["--model=m"]}, {"command": ["vllm", "serve"], "args": ["m"]}])
def test_no_argument_is_added_to_what_the_shell_runs(fields: dict[str, Any]) -> None:
    text = cluster(template(**fields))
    explained = preview(text).stdout
    assert f"Warning: {ADDED}" in explained
    assert "The pod is previewed as KubeRay makes it of this template" in explained
    (after,) = made(text)["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert {key: after[key] for key in ("command", "args") if key in after} == fields
    assert after["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}
    assert [*after][: 2 + len(fields)] == ["name", "image", *fields]


def test_what_is_above_the_share_is_denied_there_and_lowered_where_kuberay_leaves_the_command_line() -> None:
    head = template(command=LOWERED)
    assert titles(cluster(head), code=1) == {TITLE: "denied, MemoryArgumentAboveShare"}
    assert titles(cluster(head, **OVERWRITES)) == {TITLE: "granted"}
    head["metadata"] = {"annotations": {**REQUEST["annotations"], **OVERWRITES}}
    (after,) = made(cluster(head))["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert after["command"][-1] == "--gpu-memory-utilization=0.2"


def test_a_text_that_starts_ray_itself_stays() -> None:
    head = template(command=["bash", "-c"], args=["ray start --head --block & vllm serve m"])
    built = RayTemplate().build({"spec": {"headGroupSpec": {"template": head}}}, head)
    assert built is not None
    (first,) = built["spec"]["containers"]
    assert {key: first[key] for key in head["spec"]["containers"][0]} == head["spec"]["containers"][0]


def test_what_submits_a_job_keeps_its_command_and_gets_one_by_a_shell_where_it_has_none() -> None:
    spec = {"rayClusterSpec": {}, "submitterPodTemplate": template(command=["vllm", "serve"], args=["m"])}
    after = made(ray("RayJob", spec))["spec"]["submitterPodTemplate"]["spec"]["containers"][0]
    assert after["args"] == ["m", "--gpu-memory-utilization=0.2"]
    assert ADDED in preview(ray("RayJob", {**spec, "submitterPodTemplate": template()})).stdout


@pytest.mark.parametrize("containers", [[], None])
def test_a_template_of_no_containers_is_written_as_it_is(containers: list[Any] | None) -> None:
    head = {"spec": {"containers": containers}}
    assert made(cluster(head))["spec"]["headGroupSpec"]["template"] == head


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": [5]}, "spec.containers[0].command[0]: expected a string, got 5"),
        ({"args": "m"}, 'spec.containers[0].args: expected a list, got "m"'),
    ],
)
def test_a_mistake_in_a_command_line_is_said_as_it_is_written(fields: dict[str, Any], words: str) -> None:
    assert words in preview(cluster(template(**fields)), code=2).stderr


SAID = 'write num-gpus: "1" below rayStartParams'


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
@pytest.mark.parametrize("group", [{"rayStartParams": {}}, {"rayStartParams": None}, {"resources": {"CPU": "4"}}])
def test_a_group_with_a_share_of_which_ray_will_not_know_is_told_of(kind: str, group: dict[str, Any]) -> None:
    head: dict[str, Any] = {"template": {"spec": {"containers": []}}}
    spec = {"headGroupSpec": head, "workerGroupSpecs": [{"template": template(), **group}]}
    within = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}.get(kind)
    assert preview(ray(kind, {within: spec} if within else spec)).stdout.count(SAID) == 1


KNOWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "by its parameters": ({"rayStartParams": {"num-gpus": "1"}}, template()),
    "by its own resources": ({"resources": {"GPU": "1"}}, template()),
    "by resources of its parameters": ({"rayStartParams": {"resources": '"{\\"GPU\\": 1}"'}}, template()),
    "by a limit of the template": ({}, template(resources={"limits": {"gpu-share.dev/vgpu": 2}})),
    "by its own command line": ({}, template(args=["ray start --head --num-gpus=1 --block"])),
}


@pytest.mark.parametrize(("group", "one"), KNOWN.values(), ids=KNOWN)
def test_where_ray_knows_of_its_gpu_nothing_is_said_of_it(group: dict[str, Any], one: dict[str, Any]) -> None:
    assert "num-gpus: " not in preview(ray("RayCluster", {"headGroupSpec": {"template": one, **group}})).stdout


def test_nor_is_it_where_kuberay_does_not_start_ray_or_another_container_has_the_share() -> None:
    assert SAID not in preview(cluster(template(command=["/start.sh"]), **OVERWRITES)).stdout
    beside = template()
    beside["metadata"] = {"annotations": {"container.gpu-share.dev/side": "0.2"}}
    beside["spec"]["containers"].append({"name": "side", "image": "app"})
    assert SAID not in preview(cluster(beside)).stdout


def test_a_group_without_a_share_needs_no_gpu() -> None:
    plain = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.53.0"}]}}
    assert "num-gpus" not in preview(cluster(plain)).stdout


def test_what_is_translated_from_hami_is_told_of_as_well() -> None:
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50}
    worker = {
        "spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.53.0", "resources": {"limits": limits}}]}
    }
    spec = {"headGroupSpec": {"template": {"spec": {"containers": []}}}, "workerGroupSpecs": [{"template": worker}]}
    result = preview(ray("RayCluster", spec), "--from", "hami", "--gpu-memory", "81559Mi", "-o", "translated")
    assert SAID in result.stderr


MEMORY: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "a limit": ({"limits": {"memory": "4Gi"}}, "4Gi"),
    "a request, which counts": ({"limits": {"memory": "4Gi"}, "requests": {"memory": "2Gi"}}, "2Gi"),
}


@pytest.mark.parametrize(("resources", "size"), MEMORY.values(), ids=MEMORY)
def test_the_shared_memory_that_kuberay_mounts_is_replaced_by_that_of_mps(resources: dict[str, Any], size: str) -> None:
    result = preview(text := cluster(template(resources=resources)), "-o", "yaml")
    lost = f", without its sizeLimit {size}" if size else ""
    assert f'the volume "shared-mem" at /dev/shm was replaced by the shared memory of MPS{lost}\n' in result.stderr
    assert "stands elsewhere" not in result.stderr
    spec = yaml.safe_load(result.stdout)["spec"]["headGroupSpec"]["template"]["spec"]
    assert [one["name"] for one in spec["volumes"]] == ["nvidia-mps"]
    assert [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]] == ["/tmp/nvidia-mps"]
    assert "-    - mountPath: /dev/shm" in preview(text, "-o", "diff").stdout.replace("-    - name: shared-mem\n", "")


def test_a_policy_that_denies_shared_memory_of_its_own_denies_every_pod_of_ray(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mps: {sharedMemory: deny}\n")
    by = ("--policies", str(tmp_path))
    assert titles(cluster(template()), *by, code=1) == {TITLE: "denied, ConflictingRequest"}
    spec = {"rayClusterSpec": {}, "submitterPodTemplate": template(command=["vllm", "serve"], args=["m"])}
    assert set(titles(ray("RayJob", spec), *by).values()) == {"granted"}


def test_shared_memory_of_the_template_s_own_stays_as_it_is() -> None:
    head = template(volumeMounts=[{"name": "mine", "mountPath": "/dev/shm"}])
    head["spec"]["volumes"] = [{"name": "mine", "emptyDir": {"medium": "Memory"}}]
    told = preview(cluster(head)).stdout
    assert 'the volume "mine" at /dev/shm was replaced' in told
    assert '"shared-mem"' not in told


def test_a_volume_of_that_name_that_nothing_mounts_there_is_mounted_and_stays_in_the_template() -> None:
    head = template()
    head["spec"]["volumes"] = [{"name": "shared-mem", "emptyDir": {"sizeLimit": "9Gi"}}]
    result = preview(cluster(head), "-o", "yaml")
    assert "without its sizeLimit 9Gi" in result.stderr
    spec = yaml.safe_load(result.stdout)["spec"]["headGroupSpec"]["template"]["spec"]
    assert spec["volumes"][0] == {"name": "shared-mem", "emptyDir": {"sizeLimit": "9Gi"}}
    assert [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]] == ["/tmp/nvidia-mps"]


def test_a_template_without_a_share_is_written_as_it_was() -> None:
    head = {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.53.0"}]}}
    assert made(cluster(head))["spec"]["headGroupSpec"]["template"] == head
