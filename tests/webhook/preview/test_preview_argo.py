"""What Argo makes of a template: with the workflow's defaults, and with names of its own."""

from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.previewed import made, titles
from webhook.preview.argo import ArgoTemplate

REQUEST = {"metadata": {"annotations": {"gpu-share": "0.2"}}}
ROOT = {"name": "root", "hostPath": {"path": "/"}}
MOUNTED = {"volumeMounts": [{"name": "root", "mountPath": "/r"}]}
VISIBLE = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}


def workflow(template: dict[str, Any], **spec: Any) -> str:
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "it", "namespace": "ns"}}
    return yaml.safe_dump({**head, "spec": {**spec, "templates": [template]}})


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "train", "container": {"image": "my/train:1", **fields}}


@pytest.mark.parametrize(
    ("own", "defaults", "expected"),
    [
        ({}, REQUEST, "granted"),
        (REQUEST, {"container": {"env": [VISIBLE]}}, "denied, ReservedEnvironment"),
        (REQUEST, {"script": {"env": [VISIBLE]}}, "granted"),
        (REQUEST, {"sidecars": [{"name": "log", "image": "app", "env": [VISIBLE]}]}, "denied, ReservedEnvironment"),
        (REQUEST, {"containerSet": {"containers": [{"name": "a", "image": "app", "env": [VISIBLE]}]}}, "granted"),
        (REQUEST, {"volumes": [ROOT]}, "granted"),
        (REQUEST, {"volumes": [ROOT], "container": MOUNTED}, "denied, ConflictingRequest"),
        ({"metadata": {"annotations": {"gpu-share": "2"}}}, REQUEST, "denied, ShareAboveMaximum, PodShareAboveMaximum"),
        ({"metadata": {"annotations": None}}, REQUEST, "granted"),
    ],
)
def test_the_defaults_of_a_workflow_are_the_templates_too(
    own: dict[str, Any], defaults: dict[str, Any], expected: str
) -> None:
    text = workflow({**container(), **own}, templateDefaults=defaults)
    assert titles(text, code=0 if expected == "granted" else 1) == {"Workflow ns/it, spec.templates[0]": expected}


def test_a_template_comes_before_the_defaults_and_its_variables_are_merged_by_name() -> None:
    defaults = {
        "container": {
            "image": "vllm/vllm-openai:v0.11.0",
            "args": ["--model=other"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
        },
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"zone": "a", "disk": "ssd"},
        **REQUEST,
    }
    env = [{"name": "C", "value": "2"}, {"name": "B", "value": "2"}]
    own = {"container": {"args": ["--model=m"], "env": env}, "nodeSelector": {"zone": "b"}, "tolerations": []}
    pod = ArgoTemplate().build({"spec": {"templateDefaults": defaults, "templates": [own]}}, own)
    assert pod is not None
    assert pod["metadata"]["annotations"]["gpu-share"] == "0.2"
    assert pod["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "vllm/vllm-openai:v0.11.0",
                "args": ["--model=m"],
                "env": [{"name": name, "value": value} for name, value in (("A", "1"), ("B", "2"), ("C", "2"))],
            }
        ],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"zone": "b", "disk": "ssd"},
    }


def test_what_defaults_give_is_put_back_into_the_template_and_nothing_is_left_to_change() -> None:
    defaults = {"container": {"env": [{"name": "A", "value": "1"}]}, **REQUEST}
    text = workflow({**container(env=[{"name": "B", "value": "2"}]), "sidecars": []}, templateDefaults=defaults)
    after = made(text)
    assert after["spec"]["templateDefaults"] == defaults
    assert yaml.safe_load(preview(yaml.safe_dump(after), "-o", "yaml").stdout) == after


@pytest.mark.parametrize(
    ("defaults", "words"),
    [
        ({"container": 5}, "spec.templateDefaults.container: expected a mapping, got 5"),
        (
            {"metadata": {"annotations": {"gpu-share": 0.2}}},
            "spec.templateDefaults.metadata.annotations.gpu-share: exp",
        ),
        ({"container": {"env": 5}}, "spec.containers[0].env: expected a list, got 5"),
        ({"container": {"env": [7]}}, "spec.containers[0].env[0]: expected a mapping, got 7"),
    ],
)
def test_a_mistake_in_defaults_is_said(defaults: dict[str, Any], words: str) -> None:
    assert words in preview(workflow(container(), templateDefaults=defaults), code=2).stderr


@pytest.mark.parametrize(
    ("template", "spec", "place"),
    [
        ({}, {"podSpecPatch": "hostPID: true"}, "spec.podSpecPatch"),
        ({}, {"templateDefaults": {"podSpecPatch": "{}"}}, "spec.templateDefaults.podSpecPatch"),
        ({"podSpecPatch": "hostPID: true"}, {}, "spec.templates[0].podSpecPatch"),
    ],
)
@pytest.mark.parametrize("output", ["explain", "yaml"])
def test_a_patch_that_is_not_read_is_said(
    template: dict[str, Any], spec: dict[str, Any], place: str, output: str
) -> None:
    result = preview(workflow({**container(), **template}, **spec), "-o", output)
    said = f"arning: {place} is not read, and the controller patches its pods with it"
    assert said in result.stdout + result.stderr


def test_no_patch_is_said_where_there_is_none() -> None:
    assert "patches" not in preview(workflow(container(), podSpecPatch="")).stdout


def test_a_container_is_called_main_whatever_it_is_called() -> None:
    template = container(name="mine")
    text = workflow({**template, "metadata": {"annotations": {"container.gpu-share.dev/main": "0.2"}}})
    assert titles(text) == {"Workflow ns/it, spec.templates[0]": "granted"}
    assert made(text)["spec"]["templates"][0]["container"]["name"] == "mine"
    other = workflow({**template, "metadata": {"annotations": {"container.gpu-share.dev/mine": "0.2"}}})
    assert "denied" in preview(other, code=1).stdout


@pytest.mark.parametrize(("names", "gets"), [(["a", "main", "b"], 1), (["a", "b"], 1), (["main", "b"], 0)])
def test_a_plain_share_is_for_main_or_for_the_last_container_of_a_set(names: list[str], gets: int) -> None:
    containers = [{"name": name, "image": "app"} for name in names]
    (template,) = made(workflow({"containerSet": {"containers": containers}, **REQUEST}))["spec"]["templates"]
    assert ["resources" in one for one in template["containerSet"]["containers"]].index(True) == gets
