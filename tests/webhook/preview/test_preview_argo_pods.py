"""Which fields of a workflow are in the pod of a template: what its controller puts there, and what it takes of it."""

from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.previewed import made, titles
from webhook.preview.argo import ArgoTemplate

REQUEST = {"metadata": {"annotations": {"gpu-share": "0.2"}}}
TITLE = "Workflow ns/it, spec.templates[0]"
DENIED = "denied, ConflictingRequest"
DATA = {"name": "data", "hostPath": {"path": "/mnt/data"}}
OWN = {**DATA, "name": "own"}
SHM = {"name": "data", "mountPath": "/dev/shm"}
SYSCTLS = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}
TRAIN = {"container": {"image": "my/train:1"}, **REQUEST}


def workflow(*templates: dict[str, Any], **spec: Any) -> str:
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "it", "namespace": "ns"}}
    return yaml.safe_dump({**head, "spec": {**spec, "templates": [*templates]}}, sort_keys=False)


def mounting(name: str, path: str = "/data") -> dict[str, Any]:
    return {"volumeMounts": [{"name": name, "mountPath": path}]}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (TRAIN, "granted"),
        ({**TRAIN, "container": {"image": "my/train:1", **mounting("data")}}, DENIED),
        ({**TRAIN, "container": {"image": "my/train:1", **mounting("{{inputs.parameters.which}}")}}, DENIED),
        ({**TRAIN, "sidecars": [{"name": "log", "image": "app", **mounting("data")}]}, DENIED),
        ({**TRAIN, "initContainers": [{"name": "log", "image": "app", **mounting("data")}]}, DENIED),
        ({**TRAIN, "volumes": [DATA]}, "granted"),
        ({**TRAIN, "volumes": [{**DATA, "name": "own"}]}, "granted"),
        (
            {**TRAIN, "container": {"image": "my/train:1", **mounting("own")}, "volumes": [{**DATA, "name": "own"}]},
            DENIED,
        ),
        (
            {
                **TRAIN,
                "container": {"image": "my/train:1", **mounting("data")},
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
            "granted",
        ),
    ],
)
def test_a_volume_of_the_workflow_is_in_the_pods_that_mount_it(template: dict[str, Any], expected: str) -> None:
    text = workflow(template, volumes=[DATA])
    assert titles(text, code=0 if expected == "granted" else 1) == {TITLE: expected}


def test_a_volume_of_the_workflow_is_not_written_into_a_template_and_one_of_the_template_stays() -> None:
    own = {"name": "own", "emptyDir": {}}
    container = {"image": "my/train:1", **mounting("cache")}
    cache = {"name": "cache", "persistentVolumeClaim": {"claimName": "cache"}}
    (template,) = made(workflow({**TRAIN, "container": container, "volumes": [own]}, volumes=[cache, DATA]))["spec"][
        "templates"
    ]
    assert [one["name"] for one in template["volumes"]] == ["own", "nvidia-mps"]


@pytest.mark.parametrize(
    ("template", "spec", "expected"),
    [
        ({"securityContext": SYSCTLS}, {}, DENIED),
        ({}, {"securityContext": SYSCTLS}, DENIED),
        ({"securityContext": {"runAsUser": 5}}, {"securityContext": SYSCTLS}, "granted"),
        ({"resourceClaims": [{"name": "gpu"}]}, {}, DENIED),
        ({}, {"resourceClaims": [{"name": "gpu"}]}, DENIED),
    ],
)
def test_the_pod_has_security_context_and_claims_of_its_template_or_else_those_of_the_workflow(
    template: dict[str, Any], spec: dict[str, Any], expected: str
) -> None:
    text = workflow({**TRAIN, **template}, **spec)
    assert titles(text, code=0 if expected == "granted" else 1) == {TITLE: expected}


def test_a_template_comes_before_its_workflow_field_by_field_and_an_empty_field_says_nothing() -> None:
    one, other = [{"name": "one"}], [{"name": "other"}]
    spec = {"resourceClaims": one, "tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}, "schedulerName": "s"}
    own = {"container": {"image": "app"}, "resourceClaims": other, "nodeSelector": {}, "schedulerName": ""}
    pod = ArgoTemplate().build({"spec": {**spec, "initContainers": one, "templates": [own]}}, own)
    assert pod is not None
    del pod["spec"]["containers"]
    assert pod["spec"] == {**spec, "resourceClaims": other}


SET = {
    "metadata": {"annotations": {"container.gpu-share.dev/a": "0.2"}},
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}],
}


def test_the_mounts_of_a_set_are_those_of_each_of_its_containers() -> None:
    containers = {"containers": [{"name": "a", "image": "app"}], "volumeMounts": [SHM]}
    assert titles(workflow({**SET, "containerSet": containers}), code=1) == {TITLE: DENIED}


def test_the_mounts_of_a_set_are_not_written_into_its_containers() -> None:
    data, own = mounting("data")["volumeMounts"], {"name": "data", "mountPath": "/own"}
    pair = [{"name": "a", "image": "app", "volumeMounts": [own]}, {"name": "b", "image": "app"}]
    (template,) = made(workflow({**SET, "containerSet": {"containers": pair, "volumeMounts": data}}))["spec"][
        "templates"
    ]
    first, second = template["containerSet"]["containers"]
    assert [mount["mountPath"] for mount in first["volumeMounts"]] == ["/own", "/tmp/nvidia-mps"]
    assert "volumeMounts" not in second
    assert template["containerSet"]["volumeMounts"] == data


def test_no_mount_is_written_as_an_alias_and_the_order_of_mounts_and_volumes_is_no_difference() -> None:
    pair = [{"name": "a", "image": "app"}, {"name": "b", "image": "app"}]
    containers = {"containers": pair, "volumeMounts": mounting("data")["volumeMounts"]}
    cache = [{"name": "data", "emptyDir": {}}]
    text = workflow({"metadata": SET["metadata"], "containerSet": containers}, volumes=cache)
    assert "&id" not in preview(text, "-o", "diff").stdout
    written = preview(text, "-o", "yaml")
    assert "elsewhere" not in written.stderr
    assert "&id" not in written.stdout


def test_the_lists_of_a_set_are_those_of_the_template_alone_where_it_has_any() -> None:
    defaults = {"containerSet": {"containers": [{"name": "z", "image": "app"}], "volumeMounts": [SHM]}}
    own = {"containerSet": {"containers": [{"name": "a", "image": "app"}], **mounting("data")}}
    pod = ArgoTemplate().build({"spec": {"templateDefaults": defaults, "templates": [own]}}, own)
    assert pod is not None
    assert pod["spec"]["containers"] == [{"name": "a", "image": "app", **mounting("data")}]


def test_templates_in_steps_and_tasks_have_pods_however_deep_they_are() -> None:
    dag = {"dag": {"tasks": [{"name": "b", "template": "x"}, {"name": "c", "inline": TRAIN}]}}
    text = workflow({"steps": [[{"name": "a", "inline": TRAIN}], [{"name": "b", "inline": dag}]]})
    inner = "spec.templates[0].steps[1][0].inline.dag.tasks[1].inline"
    assert titles(text) == {
        f"Workflow ns/it, {path}": "granted" for path in ("spec.templates[0].steps[0][0].inline", inner)
    }
    after = made(text)["spec"]["templates"][0]["steps"]
    for one in (after[0][0]["inline"], after[1][0]["inline"]["dag"]["tasks"][1]["inline"]):
        assert one["container"]["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}


def test_a_patch_of_a_template_in_a_step_is_said() -> None:
    text = workflow({"steps": [[{"name": "a", "inline": {**TRAIN, "podSpecPatch": "hostPID: true"}}]]})
    place = "spec.templates[0].steps[0][0].inline.podSpecPatch"
    assert preview(text).stdout.count(f"Warning: {place} is not read, and the controller patches its pods with it") == 1


def test_a_template_takes_over_the_tolerations_of_its_workflow_where_it_gets_more_of_them() -> None:
    template, spec = {**TRAIN}, {"tolerations": [{"key": "team", "operator": "Exists"}]}
    shape, document = ArgoTemplate(), {"spec": {**spec, "templates": [template]}}
    before = shape.build(document, template)
    assert before is not None
    more = [*spec["tolerations"], {"key": "nvidia.com/gpu", "operator": "Exists"}]
    shape.put_back(document, template, before, {**before, "spec": {**before["spec"], "tolerations": more}})
    again = shape.build(document, template)
    assert again is not None
    assert again["spec"]["tolerations"] == more
