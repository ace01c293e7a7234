"""What a Volcano Job says for all its tasks is in the pods of each, and in no template that is written."""

from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.previewed import made, titles
from webhook.preview.volcano import VolcanoTask

TITLE = "Job ns/it, spec.tasks[0].template"
DENIED = "denied, ConflictingRequest"


def job(spec: dict[str, Any], **fields: Any) -> str:
    container = {"name": "a", "image": "my/train:1", **fields}
    template = {"metadata": {"annotations": {"gpu-share": "0.2"}}, "spec": {"containers": [container]}}
    head = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "it", "namespace": "ns"}}
    tasks = [{"replicas": 1, "name": "t", "template": template}]
    return yaml.safe_dump({**head, "spec": {**spec, "tasks": tasks}}, sort_keys=False)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([{"mountPath": "/dev/shm", "volumeClaimName": "shm"}], DENIED),
        ([{"mountPath": "/dev/shm", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}], DENIED),
        (
            [{"mountPath": "/data", "volumeClaimName": "a"}, {"mountPath": "/dev/shm", "volumeClaimName": "a"}],
            "granted",
        ),
        ([{"mountPath": "/data", "volumeClaimName": "data"}], "granted"),
        (None, "granted"),
    ],
)
def test_each_container_mounts_the_volumes_of_its_job(volumes: list[dict[str, Any]] | None, expected: str) -> None:
    assert titles(job({"volumes": volumes}), code=0 if expected == "granted" else 1) == {TITLE: expected}


def test_what_is_of_the_job_is_not_written_into_the_template() -> None:
    spec = {"schedulerName": "volcano", "volumes": [{"mountPath": "/data", "volumeClaimName": "data"}]}
    (task,) = made(job(spec))["spec"]["tasks"]
    written = task["template"]["spec"]
    assert "schedulerName" not in written
    assert [one["name"] for one in written["volumes"]] == ["nvidia-mps"]
    assert [one["mountPath"] for one in written["containers"][0]["volumeMounts"]] == ["/tmp/nvidia-mps"]
    (plain,) = made(job(spec).replace("gpu-share: '0.2'", "a: b"))["spec"]["tasks"]
    assert plain == yaml.safe_load(job(spec).replace("gpu-share: '0.2'", "a: b"))["spec"]["tasks"][0]


def test_a_task_has_its_own_scheduler_or_else_that_of_its_job() -> None:
    document = yaml.safe_load(job({"schedulerName": "volcano"}))
    template = document["spec"]["tasks"][0]["template"]
    pod = VolcanoTask().build(document, template)
    assert pod is not None
    assert pod["spec"]["schedulerName"] == "volcano"
    template["spec"]["schedulerName"] = "own"
    pod = VolcanoTask().build(document, template)
    assert pod is not None
    assert pod["spec"]["schedulerName"] == "own"


def test_a_scheduler_that_a_translation_removes_comes_back_from_no_job() -> None:
    resources = {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50}}
    text = job({"schedulerName": "hami-scheduler"}, resources=resources).replace("gpu-share: '0.2'", "a: b")
    written = preview(text, "--from", "hami", "--gpu-memory", "80Gi", "-o", "translated").stdout
    (task,) = yaml.safe_load(written)["spec"]["tasks"]
    assert task["template"]["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("spec", "fields", "words"),
    [
        ({"volumes": 5}, {}, "spec.volumes: expected a list, got 5"),
        ({"volumes": [{"volumeClaimName": "a"}]}, {}, "spec.volumes[0]: mountPath is missing"),
        ({"volumes": [{"mountPath": "/a"}]}, {"volumeMounts": 5}, "volumeMounts: expected a list, got 5"),
    ],
)
def test_a_mistake_in_either_is_said(spec: dict[str, Any], fields: dict[str, Any], words: str) -> None:
    assert words in preview(job(spec, **fields), code=2).stderr


@pytest.mark.parametrize("text", ["spec: {containers: [5]}", "spec: {containers: 5}", "spec: {volumes: 5}"])
def test_a_template_that_is_none_is_said(text: str) -> None:
    document = yaml.safe_load(job({"volumes": [{"mountPath": "/a"}]}))
    document["spec"]["tasks"][0]["template"] = yaml.safe_load(text)
    assert "expected a" in preview(yaml.safe_dump(document), code=2).stderr
