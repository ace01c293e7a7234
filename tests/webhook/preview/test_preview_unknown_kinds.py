"""Kinds that no table names: what in them looks like a pod or a request is said, and a path makes it one."""

import json

import pytest
import yaml

from tests.webhook.commands import POD, preview
from tests.webhook.preview.previewed import made, titles

UNKNOWN = """\
apiVersion: example.com/v1
kind: Server
metadata: {name: it}
spec:
  pods:
  - template:
      metadata: {annotations: {gpu-share: "0.2"}}
      spec:
        containers: [{name: a, image: b}]
"""
FLAT = """\
apiVersion: example.com/v1
kind: Server
metadata: {name: it, annotations: {gpu-share: "0.2"}}
spec:
  engine:
    containers:
    - {name: a, image: b}
"""
ANNOTATED = FLAT.replace("    containers", "    annotations: {}\n    containers")


@pytest.mark.parametrize(
    ("text", "place", "option", "path"),
    [
        (
            UNKNOWN.replace("pods:", "on:"),
            "9: Server it: spec.true[0].template.spec.containers",
            "spec.true.*.template",
            "spec.true[0].template",
        ),
        (
            UNKNOWN.replace("pods:", "1:"),
            "9: Server it: spec.1[0].template.spec.containers",
            "spec.1.*.template",
            "spec.1[0].template",
        ),
        (
            UNKNOWN,
            "9: Server it: spec.pods[0].template.spec.containers",
            "spec.pods.*.template",
            "spec.pods[0].template",
        ),
        (ANNOTATED, "8: Server it: spec.engine.containers", "spec.engine", "spec.engine"),
        (
            ANNOTATED.replace("  engine:\n    ", "  ").replace("\n    ", "\n  "),
            "7: Server it: spec.containers",
            "spec",
            "spec",
        ),
    ],
)
def test_an_unknown_kind_with_containers_says_where_they_are_and_how_to_name_them(
    text: str, place: str, option: str, path: str
) -> None:
    result = preview(text, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"gpu-share: standard input:{place} has containers")
    assert result.stderr.endswith(f": add --pod-path {option}\n")
    assert titles(text, "--pod-path", option) == {f"Server default/it, {path}": "granted"}
    assert '"gpu-share.dev/vgpu": "2"' in json.dumps(made(text, "--pod-path", option))


BARE_TEMPLATE = FLAT.replace('"0.2"', '"0"').replace(
    "    containers:\n    - {name: a, image: b}",
    "    spec: {containers: [{name: a, image: b, resources: {limits: {gpu-share.dev/vgpu: 2}}}]}",
)


@pytest.mark.parametrize("text", [FLAT, BARE_TEMPLATE])
@pytest.mark.parametrize("output", ["yaml", "diff"])
def test_where_it_is_not_known_where_annotations_go_nothing_is_written(text: str, output: str) -> None:
    result = preview(text, "--pod-path", "spec.engine", "-o", output, code=2 if output == "yaml" else 0)
    said = "Server default/it, spec.engine: nothing is written there, since it is not known where this kind takes the"
    assert result.stderr.count(said) == (output == "yaml")
    if output == "yaml":
        assert yaml.safe_load(result.stdout) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (FLAT.replace("    containers", "    labels: {}\n    containers"), ("spec", "engine")),
        (FLAT.replace("    containers", "    metadata: {}\n    containers"), ("spec", "engine", "metadata")),
        (FLAT.replace("    containers", "    metadata:\n    containers"), ("spec", "engine", "metadata")),
        (BARE_TEMPLATE.replace("    spec", "    metadata: {}\n    spec"), ("spec", "engine", "metadata")),
        (BARE_TEMPLATE.replace("    spec", "    metadata:\n    spec"), ("spec", "engine", "metadata")),
        (BARE_TEMPLATE.replace("engine", "podTemplate"), ("spec", "podTemplate", "metadata")),
    ],
)
def test_annotations_go_where_the_object_shows_a_place_for_them(text: str, path: tuple[str, ...]) -> None:
    found = made(text, "--pod-path", ".".join(path).removesuffix(".metadata"))
    for step in path:
        found = found[step]
    assert "gpu-share.dev/grant" in found["annotations"]
    assert found["labels"] == {"gpu-share.dev/shared": "true"}


def test_a_request_in_metadata_beside_the_fields_of_a_pod_counts() -> None:
    text = FLAT.replace(', annotations: {gpu-share: "0.2"}', "").replace(
        "    containers", '    metadata: {annotations: {gpu-share: "0.2"}}\n    containers'
    )
    told = preview(text, "--pod-path", "spec.engine").stdout
    assert "Server default/it, spec.engine: granted" in told
    assert "move it" not in told


BOTH = FLAT.replace(', annotations: {gpu-share: "0.2"}', "").replace("    containers", "    HERE\n    containers")
SHARED = 'annotations: {gpu-share: "0.2"}'


@pytest.mark.parametrize(
    ("here", "path"),
    [
        (f"metadata: {{name: w}}\n    {SHARED}", ("engine",)),
        (f"metadata:\n    {SHARED}", ("engine",)),
        (f"metadata: {{{SHARED}}}\n    labels: {{}}", ("engine", "metadata")),
        (f"metadata: {{{SHARED}}}\n    annotations: {{}}", ()),
        (f"metadata: {{annotations: {{a: b}}}}\n    {SHARED}", ()),
    ],
)
def test_of_metadata_and_annotations_beside_it_that_which_has_them_is_the_place_and_else_none_is_known(
    here: str, path: tuple[str, ...]
) -> None:
    text = BOTH.replace("HERE", here)
    told = preview(text, "--pod-path", "spec.engine").stdout
    assert "Server default/it, spec.engine: granted" in told
    assert "move it" not in told
    result = preview(text, "--pod-path", "spec.engine", "-o", "yaml", code=0 if path else 2)
    assert ("have annotations in just one of the two at this path" in result.stderr) is not bool(path)
    found = yaml.safe_load(result.stdout)
    if not path:
        assert found == yaml.safe_load(text)
        return
    found = found["spec"]
    for step in path:
        found = found[step]
    assert found["annotations"].keys() == {"gpu-share", "gpu-share.dev/grant"}


def test_a_pod_of_another_system_is_not_translated_where_annotations_have_no_known_place() -> None:
    limits = "resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}"
    text = FLAT.replace("image: b", f"image: b, {limits}").replace(', annotations: {gpu-share: "0.2"}', "")
    options = ("--from", "hami", "--gpu-memory", "40Gi", "--pod-path", "spec.engine", "-o", "translated")
    result = preview(text, *options, code=2)
    assert "spec.engine: not translated from HAMi: nothing is written there, since it is not known" in result.stderr
    assert "is in no pod that is known" not in result.stderr
    assert yaml.safe_load(result.stdout) == yaml.safe_load(text)


def test_an_unknown_kind_with_an_annotation_and_no_containers_is_said_too() -> None:
    text = (
        'kind: TrainJob\napiVersion: trainer.kubeflow.org/v1alpha1\nmetadata:\n  annotations:\n    gpu-share: "0.2"\n'
    )
    stderr = preview(text, code=2).stderr
    assert "standard input:5: TrainJob (no name): metadata.annotations has gpu-share, and no pod is found" in stderr
    dag = 'kind: Workflow\napiVersion: argoproj.io/v1alpha1\nmetadata: {annotations: {gpu-share: "1"}}\n'
    dag += "spec: {templates: [{dag: {}}]}"
    assert "and no pod is found" in preview(dag, code=2).stderr


@pytest.mark.parametrize(
    "text",
    [
        "kind: ConfigMap\ndata: {a: 'containers: [{image: x}]'}",
        "kind: Rollout\napiVersion: argoproj.io/v1alpha1\nspec: {workloadRef: {name: a}}",
        "kind: Server\napiVersion: example.com/v1\nmetadata: {annotations: {a: b}, labels: {gpu-share.dev/mode: warn}}",
        "kind: CustomResourceDefinition\nspec: {schema: {properties: {containers: {type: array, items: {}}}}}",
    ],
)
def test_objects_with_neither_stay_silent(text: str) -> None:
    result = preview(text)
    assert (result.stdout, result.stderr) == ("No pod and no pod template here.\n", "")


@pytest.mark.parametrize("output", ["explain", "diff", "yaml"])
def test_the_other_objects_of_the_input_are_shown_all_the_same(output: str) -> None:
    result = preview(f"{POD}---\n{UNKNOWN}", "-o", output, code=2)
    assert "Pod default/web" in result.stdout or "gpu-share.dev/grant" in result.stdout
    assert "--pod-path" in result.stderr


def test_an_unknown_kind_is_said_where_one_pod_is_wanted() -> None:
    stderr = preview(UNKNOWN, "-o", "patch", code=2).stderr
    assert "--pod-path spec.pods.*.template" in stderr
    assert "-o patch takes one pod, got 0" in stderr


def test_a_path_that_fits_nothing_is_said_so() -> None:
    for on, path in ((POD, "spec.other"), (UNKNOWN, f"spec.pods.{'9' * 5000}")):
        assert f"--pod-path {path}: no object has a pod there" in preview(on, "--pod-path", path, code=2).stderr
    assert all(preview(POD, "--pod-path", bad, code=2).stdout == "" for bad in ("spec..x", ".spec", "a b", ""))


BESIDE = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: it}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: a, image: b}]}}}
  extra:
    containers: [{name: c, image: d}]
status:
  last: {containers: [{name: e, image: f}]}
"""


def test_containers_beside_the_pods_of_a_known_kind_are_said_and_those_that_a_controller_noted_are_not() -> None:
    result = preview(BESIDE, code=2)
    assert "RayCluster default/it, spec.headGroupSpec.template: untouched" in result.stdout
    said = "7: RayCluster it: spec.extra.containers has containers, and no pod that is known has them: add "
    assert result.stderr == f"gpu-share: standard input:{said}--pod-path spec.extra\n"
    assert len(titles(BESIDE, "--pod-path", "spec.extra")) == 2


def test_of_a_kind_whose_pods_a_path_names_the_others_are_said() -> None:
    more = UNKNOWN + "  other:\n    containers: [{name: a, image: b}]\n"
    stderr = preview(more, "--pod-path", "spec.pods.*.template", code=2).stderr
    assert "spec.other.containers has containers" in stderr
    assert stderr.count("--pod-path") == 1


@pytest.mark.parametrize("kind", ["Server", "InferenceService"])
def test_containers_at_the_top_level_are_said_to_be_in_no_place_and_other_objects_are_previewed(kind: str) -> None:
    text = f"""\
apiVersion: serving.kserve.io/v1beta1
kind: {kind}
metadata: {{name: it}}
spec: {{predictor: {{model: {{modelFormat: {{name: huggingface}}}}}}}}
containers:
- {{name: a, image: x}}
---
{POD}"""
    result = preview(text, code=2)
    assert result.stderr == (
        f"gpu-share: standard input:6: {kind} it: containers is at the top level, where no object has its pods: "
        "move it to where they are\n"
    )
    assert "Pod default/web: granted" in result.stdout
