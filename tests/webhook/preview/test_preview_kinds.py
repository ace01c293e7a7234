"""Custom resources that hold pods: found where their controllers find them, and never passed over in silence."""

import json
from pathlib import Path

import pytest
import yaml

from tests.webhook.commands import POD, preview, run
from tests.webhook.preview.custom_resources import CUSTOM, INFERENCE_SERVICE, NOTEBOOK
from tests.webhook.preview.previewed import made, titles
from webhook.preview import kinds

EVERY = pytest.mark.parametrize("kind", CUSTOM)
WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
  templates:
  - container: {image: app}
"""


@EVERY
def test_every_pod_of_a_kind_is_found_and_named_by_its_path(kind: str) -> None:
    text, expected = CUSTOM[kind]
    assert titles(text) == {f"{kind} ns/it{f', {path}' if path else ''}": verdict for path, verdict in expected.items()}


@EVERY
def test_the_changed_pods_are_put_back_and_nothing_is_left_to_change(kind: str) -> None:
    text, expected = CUSTOM[kind]
    after = made(text)
    granted = sum(verdict == "granted" for verdict in expected.values())
    assert json.dumps(after).count('"gpu-share.dev/grant"') == granted
    assert json.dumps(after["spec"]).count('"requests": {"gpu-share.dev/vgpu"') == granted
    again = yaml.safe_load(preview(yaml.safe_dump(after), "-o", "yaml").stdout)
    assert again == after


@EVERY
def test_a_diff_shows_each_pod_under_its_path(kind: str) -> None:
    text, expected = CUSTOM[kind]
    diff = preview(text, "-o", "diff").stdout
    for path, verdict in expected.items():
        assert (f"+++ {kind} ns/it{f', {path}' if path else ''} as admitted" in diff) is (verdict == "granted")


def test_every_kind_of_the_table_is_tried_here_and_has_a_source() -> None:
    known = {kind for (_, kind), one in kinds._KNOWN.items() if not one.is_built_in}
    assert known == set(CUSTOM)
    assert all(one.source.startswith("https://") for one in kinds._KNOWN.values())


def test_a_model_of_kserve_is_the_container_that_its_controller_makes() -> None:
    after = made(INFERENCE_SERVICE)
    model = after["spec"]["predictor"]["model"]
    assert model["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}
    assert model["modelFormat"] == {"name": "huggingface"}
    assert "name" not in model
    assert after["spec"]["predictor"]["minReplicas"] == 1
    assert "minReplicas" not in preview(INFERENCE_SERVICE, "-o", "diff").stdout
    assert after["spec"]["predictor"]["hostIPC"] is True
    assert '"kserve-container"' in after["spec"]["predictor"]["annotations"]["gpu-share.dev/grant"]
    assert after["spec"]["transformer"] == yaml.safe_load(INFERENCE_SERVICE)["spec"]["transformer"]
    assert "previewed as KServe makes it of this component" in preview(INFERENCE_SERVICE).stdout


def test_annotations_of_an_inference_service_reach_every_component() -> None:
    text = INFERENCE_SERVICE.replace('    annotations: {gpu-share: "0.2"}\n', "").replace(
        "namespace: ns}", 'namespace: ns, annotations: {gpu-share: "0.2"}}'
    )
    assert set(titles(text).values()) == {"granted"}


def test_the_workers_of_a_predictor_get_its_annotations() -> None:
    worker = "    workerSpec: {containers: [{name: worker-container, image: app}]}\n"
    text = INFERENCE_SERVICE.replace("    minReplicas: 1\n", worker)
    assert titles(text)["InferenceService ns/it, spec.predictor.workerSpec"] == "granted"
    result = preview(text, "-o", "yaml")
    workers = yaml.safe_load(result.stdout)["spec"]["predictor"]["workerSpec"]
    assert workers["containers"][0]["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}
    assert not workers.keys() & {"annotations", "labels"}
    said = "spec.predictor.workerSpec: gpu-share.dev/grant has no place in workerSpec, which has no annotations"
    assert result.stderr.count(said) == 1
    again = preview(result.stdout, "-o", "yaml")
    assert again.stdout == result.stdout


def test_a_notebook_takes_its_annotations_from_the_object_and_gets_the_memory_of_mps() -> None:
    result = preview(NOTEBOOK)
    assert "without its sizeLimit 2Gi" in result.stdout
    assert "previewed with the annotations and labels of the Notebook" in result.stdout
    after = made(NOTEBOOK)
    assert "gpu-share.dev/grant" in after["metadata"]["annotations"]
    assert "metadata" not in after["spec"]["template"]
    mounts = after["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts] == ["/tmp/nvidia-mps"]


def test_a_share_on_the_template_of_a_notebook_is_said_to_be_lost() -> None:
    text = NOTEBOOK.replace('gpu-share: "0.2", ', "").replace(
        "  template:\n", '  template:\n    metadata: {annotations: {gpu-share: "0.2"}}\n'
    )
    said = "gpu-share is at spec.template.metadata.annotations; move it to the Notebook's own metadata"
    assert said in preview(text).stdout


def test_what_has_no_place_in_a_workflow_template_is_said() -> None:
    text, _ = CUSTOM["Workflow"]
    result = preview(text, "-o", "yaml")
    assert "templates[1]: hostIPC has no place in a Workflow" in result.stderr
    after = yaml.safe_load(result.stdout)["spec"]["templates"]
    assert after[1]["container"]["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}
    assert after[1]["volumes"][0]["name"] == "nvidia-mps"
    assert after[1]["sidecars"][0]["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert "name" not in after[1]["container"]
    assert after[0] == yaml.safe_load(text)["spec"]["templates"][0]
    assert [("resources" in one) for one in after[3]["containerSet"]["containers"]] == [False, True]
    assert after[2]["script"]["source"] == "print()"
    assert "kubectl.kubernetes.io/default-container" not in after[1]["metadata"]["annotations"]


def test_a_share_on_a_workflow_reaches_no_pod_and_pod_metadata_does() -> None:
    text, _ = CUSTOM["Workflow"]
    lost = text.replace("namespace: ns}", 'namespace: ns, annotations: {gpu-share: "0.1"}}')
    assert "gpu-share is on the Workflow; move it to the metadata of the template, or spec.podMetadata" in (
        preview(lost).stdout
    )
    for_all = text.replace(
        "  entrypoint", "  podMetadata: {annotations: {gpu-share.dev/framework: none}}\n  entrypoint"
    )
    assert preview(for_all).stdout.count("No framework is known") == 3


@pytest.mark.parametrize("kind", ["RayCluster", "JobSet", "Rollout"])
def test_a_share_on_the_object_is_said_to_reach_no_pod(kind: str) -> None:
    text = CUSTOM[kind].text.replace("namespace: ns}", 'namespace: ns, annotations: {gpu-share: "0.2"}}')
    assert f"Warning: gpu-share is on the {kind}; move it to its pod template's metadata." in preview(text).stdout


def test_a_path_adds_to_what_is_known_of_a_kind_and_counts_no_pod_twice() -> None:
    text, _ = CUSTOM["RayCluster"]
    more = text.replace("spec:\n", "spec:\n    extra: {containers: [{name: a, image: b}]}\n", 1)
    paths = ("--pod-path", "spec.extra", "--pod-path", "spec.workerGroupSpecs.*.template")
    assert len(titles(more, *paths)) == 4


def test_several_files_may_hold_different_kinds(tmp_path: Path) -> None:
    for kind, (text, _) in CUSTOM.items():
        (tmp_path / f"{kind}.yaml").write_text(text)
    result = run("preview", *sorted(tmp_path.iterdir()))
    assert result.stdout.count(": granted") == sum(
        verdict == "granted" for _, found in CUSTOM.values() for verdict in found.values()
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            INFERENCE_SERVICE.replace('"0.2"', "0.2"),
            "standard input:6: spec.predictor.annotations.gpu-share: expected a string",
        ),
        (
            NOTEBOOK.replace('gpu-share: "0.2"', "gpu-share: 0.2"),
            "standard input:3: metadata.annotations.gpu-share: expected a string",
        ),
        (
            NOTEBOOK.replace("image: jupyter", "image: [a]"),
            "standard input:8: spec.containers[0].image: expected a string",
        ),
        (CUSTOM["JobSet"].text.replace("name: main, ", ""), "name is missing"),
        (WORKFLOW + "  volumes: 5\n", "standard input:6: spec.volumes: expected a list, got 5"),
        (WORKFLOW + "  podMetadata: foo\n", "standard input:6: spec.podMetadata: expected a mapping"),
        (WORKFLOW + "    sidecars: 7\n", "standard input:6: spec.templates[0].sidecars: expected a list, got 7"),
        (WORKFLOW + "    metadata: foo\n", "standard input:6: spec.templates[0].metadata: expected a mapping"),
        (
            WORKFLOW + "    containerSet: {containers: [{image: a}]}\n",
            "standard input:6: spec.templates[0].containerSet.containers[0]: name is missing: add it",
        ),
        (WORKFLOW + "    containerSet: {containers: [abc]}\n", 'containers[0]: expected a mapping, got "abc"'),
        (
            INFERENCE_SERVICE.replace("    annotations:", "    containers: 5\n    annotations:"),
            "spec.predictor.containers: expected a list, got 5",
        ),
    ],
)
def test_a_mistake_in_a_custom_resource_is_said_with_its_line(text: str, words: str) -> None:
    assert words in preview(text, code=2).stderr


def test_an_empty_volume_is_an_empty_dir_as_the_api_server_has_it() -> None:
    text = POD + "    volumeMounts: [{name: a, mountPath: /dev/shm}]\n  volumes: [{name: a, emptyDir: }]\n"
    assert "Pod default/web: granted" in preview(text).stdout


@pytest.mark.parametrize(
    ("names", "called"),
    [
        ([None], ["user-container"]),
        ([None, None], ["user-container-0", "user-container-1"]),
        (["web", ""], ["web", "user-container-0"]),
        (["user-container-0", None, None], ["user-container-0", "user-container-1", "user-container-2"]),
    ],
)
def test_containers_of_knative_without_a_name_get_its_own(names: list[str | None], called: list[str]) -> None:
    containers = [{"image": "x", **({} if name is None else {"name": name})} for name in names]
    metadata = {"annotations": {f"container.gpu-share.dev/{called[-1]}": "0.2"}}
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "it"},
        "spec": {
            "template": {"metadata": metadata, "spec": {"containers": containers, "initContainers": [{"image": "x"}]}}
        },
    }
    spec = made(json.dumps(service))["spec"]["template"]["spec"]
    assert [one["name"] for one in spec["containers"]] == called
    assert [one["name"] for one in spec["initContainers"]] == ["init-container"]
    assert "gpu-share.dev/vgpu" in spec["containers"][-1]["resources"]["limits"]
