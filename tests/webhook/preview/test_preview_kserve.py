"""What KServe calls the containers of its pods, and which annotations they get."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.previewed import made, titles

IMAGE = "my/server:1"
PREDICTOR = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: m}
spec:
  predictor:
"""


def service(component: str, *names: str, at: str = "containers", **annotations: str) -> str:
    containers: Any = [{"name": name, "image": IMAGE} if name else {"image": IMAGE} for name in names]
    fields = {"annotations": annotations, at: containers if at == "containers" else containers[0]}
    metadata = {"name": "it", "namespace": "ns"}
    head = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": metadata}
    return yaml.safe_dump({**head, "spec": {component: fields}}, sort_keys=False)


def share(name: str) -> dict[str, str]:
    return {f"container.gpu-share.dev/{name}": "0.2"}


RENAMED = pytest.mark.parametrize(
    ("component", "names"),
    [
        ("predictor", ["vllm"]),
        ("predictor", [""]),
        ("predictor", ["", "proxy"]),
        ("transformer", ["pre"]),
        ("transformer", ["pre", "proxy"]),
        ("explainer", ["why", "proxy"]),
    ],
)


@RENAMED
def test_the_container_that_serves_is_called_kserve_container_whatever_it_is_called(
    component: str, names: list[str]
) -> None:
    assert titles(service(component, *names, **share("kserve-container"))) == {
        f"InferenceService ns/it, spec.{component}": "granted"
    }


@RENAMED
def test_it_keeps_its_name_in_what_is_written(component: str, names: list[str]) -> None:
    after = made(service(component, *names, **share("kserve-container")))["spec"][component]["containers"]
    assert [one.get("name", "") for one in after] == names
    assert after[0]["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}


@pytest.mark.parametrize(("component", "names"), [("predictor", ["vllm"]), ("transformer", ["pre", "proxy"])])
def test_a_share_for_the_name_that_it_has_in_the_file_is_denied(component: str, names: list[str]) -> None:
    result = preview(service(component, *names, **share(names[0])), code=1)
    assert f'names the container "{names[0]}", which is not in the pod' in result.stdout
    assert '"kserve-container"' in result.stdout


@pytest.mark.parametrize(
    ("component", "names", "name"),
    [("predictor", ["kserve-container", "proxy"], "proxy"), ("transformer", ["pre", "proxy"], "proxy")],
)
def test_the_other_containers_keep_their_names(component: str, names: list[str], name: str) -> None:
    assert set(titles(service(component, *names, **share(name))).values()) == {"granted"}


def test_workers_keep_theirs() -> None:
    text = service("predictor", "", at="model", **share("worker-container"))
    document = yaml.safe_load(text)
    document["spec"]["predictor"]["workerSpec"] = {"containers": [{"name": "worker-container", "image": IMAGE}]}
    found = titles(yaml.safe_dump(document), code=1)
    assert found["InferenceService ns/it, spec.predictor.workerSpec"] == "granted"


RUNTIME = """\
apiVersion: serving.kserve.io/v1alpha1
kind: ClusterServingRuntime
metadata: {name: it, annotations: {a: b}}
spec:
  annotations: {gpu-share: "0.2"}
  containers: [{name: kserve-container, image: app}]
  workerSpec:
    annotations: {b: c}
    containers: [{name: worker-container, image: app, resources: {limits: {gpu-share.dev/vgpu: 2}}}]
"""


def test_the_workers_of_a_runtime_are_pods_of_their_own_annotations() -> None:
    assert titles(RUNTIME) == {
        "ClusterServingRuntime default/it, spec": "granted",
        "ClusterServingRuntime default/it, spec.workerSpec": "granted",
    }
    privileged = RUNTIME.replace("image: app, resources", "image: app, securityContext: {privileged: true}, resources")
    assert "workerSpec: denied, PrivilegedContainer" in preview(privileged, code=1).stdout
    without = RUNTIME.replace(", resources: {limits: {gpu-share.dev/vgpu: 2}}", "")
    assert titles(without)["ClusterServingRuntime default/it, spec.workerSpec"] == "untouched"


def test_a_share_on_a_runtime_itself_reaches_no_pod() -> None:
    lost = RUNTIME.replace("a: b", 'gpu-share: "0.1"').replace('  annotations: {gpu-share: "0.2"}\n', "")
    result = preview(lost).stdout
    assert "gpu-share is on the ClusterServingRuntime; move it to spec.annotations" in result
    assert "ClusterServingRuntime default/it, spec: untouched" in result


def test_annotations_that_a_predictor_s_workers_have_in_the_file_reach_no_pod() -> None:
    text = (
        PREDICTOR
        + """\
    model: {modelFormat: {name: huggingface}}
    workerSpec:
      annotations: {gpu-share: "0.2"}
      containers: [{name: worker-container, image: app}]
"""
    )
    told = preview(text).stdout
    assert "InferenceService default/m, spec.predictor.workerSpec: untouched" in told
    said = "gpu-share is at spec.predictor.workerSpec.annotations; move it to the annotations of its predictor"
    assert said in told


FROM_HAMI = ("--from", "hami", "--gpu-memory", "40Gi")


@pytest.mark.parametrize("output", ["explain", "yaml", "translated"])
@pytest.mark.parametrize("memory", [8000, 20000])
def test_workers_of_another_share_than_their_predictor_are_left_as_they_are_with_code_2(
    memory: int, output: str
) -> None:
    text = (
        PREDICTOR
        + f"""\
    model: {{modelFormat: {{name: huggingface}}, resources: {{limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}}}}}
    workerSpec:
      containers:
      - {{name: worker-container, resources: {{limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: {memory}}}}}}}
"""
    )
    differs = memory != 8000
    result = preview(text, *FROM_HAMI, "-o", output, code=2 if differs else 0)
    said = 'gpu-share: "0.489" has no place: KServe gives workers the annotations of their predictor, where it is 0.196'
    assert result.stderr.count(said) == differs
    assert "is in no pod that is known" not in result.stderr
    if output != "explain":
        workers = yaml.safe_load(result.stdout)["spec"]["predictor"]["workerSpec"]
        assert "annotations" not in workers
        assert ("nvidia.com/gpumem" in workers["containers"][0].get("resources", {}).get("limits", {})) is differs


def test_workers_that_ask_for_nothing_are_told_of_the_share_of_their_predictor_with_code_2() -> None:
    text = (
        PREDICTOR
        + """\
    annotations: {other: }
    model: {modelFormat: {name: huggingface}, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}}
    workerSpec: {containers: [{name: worker-container}]}
"""
    )
    told = preview(text, *FROM_HAMI, "-o", "translated", code=2).stderr
    said = (
        'workerSpec: not translated from HAMi: gpu-share: "0.196" of another pod in the InferenceService would reach it'
    )
    assert told.count(said) == 1
    without = text.replace(", nvidia.com/gpumem: 8000", "").replace("nvidia.com/gpu: 1", "cpu: 1")
    assert preview(without, *FROM_HAMI, "-o", "translated").stderr.count("would reach") == 0


@pytest.mark.parametrize(
    ("server", "limits", "texts"),
    [
        ("gpu-share.dev/vgpu", {}, None),
        ("gpu-share.dev/vgpu", {"nvidia.com/gpu": 1}, None),
        ("gpu-share.dev/vgpu", {"gpu-share.dev/vgpu": 2}, {"gpu-share.dev/shared": "true"}),
        ("cpu", {}, None),
    ],
)
def test_workers_that_are_admitted_without_a_share_are_admitted_in_what_is_written_for_their_predictor(
    server: str, limits: dict[str, int], texts: dict[str, str] | None
) -> None:
    document = yaml.safe_load(service("predictor", "server"))
    predictor = document["spec"]["predictor"]
    predictor["containers"][0]["resources"] = {"limits": {server: 2}}
    predictor["workerSpec"] = {"containers": [{"name": "worker", "image": IMAGE, "resources": {"limits": limits}}]}
    text = yaml.safe_dump(document)
    result = preview(text, "-o", "yaml")
    assert yaml.safe_load(result.stdout)["spec"]["predictor"].get("labels") == texts
    assert titles(result.stdout) == titles(text)
    said = "grant and gpu-share.dev/shared: left to the webhook, since spec.predictor.workerSpec would get the same"
    assert result.stderr.count(said) == (server != "cpu" and texts is None)


PLACED = {"_default.yaml": "placement: {schedulerName: bins, runtimeClassName: nvidia, nodeSelector: {a: b}}\n"}


def test_placement_that_a_runtime_has_no_field_for_is_left_to_the_webhook(tmp_path: Path) -> None:
    for name, content in PLACED.items():
        (tmp_path / name).write_text(content)
    result = preview(RUNTIME, "--policies", str(tmp_path), "-o", "yaml")
    spec = yaml.safe_load(result.stdout)["spec"]
    for one in (spec, spec["workerSpec"]):
        assert one["nodeSelector"] == {"a": "b"}
        assert not one.keys() & {"schedulerName", "runtimeClassName"}
        assert "gpu-share.dev/grant" in one["annotations"]
    for field in ("schedulerName", "runtimeClassName"):
        said = f"{field} has no place in a ClusterServingRuntime: the webhook adds it to the pod"
        assert result.stderr.count(said) == 2
