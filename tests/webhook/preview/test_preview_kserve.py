"""What KServe calls the containers of its pods, and which annotations they get."""

from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.previewed import made, titles

IMAGE = "my/server:1"


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


@pytest.mark.parametrize(("memory", "is_said"), [(8000, False), (20000, True)])
def test_workers_of_another_share_than_their_predictor_are_said_to_have_no_place_for_it(
    memory: int, *, is_said: bool
) -> None:
    text = f"""\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: m}}
spec:
  predictor:
    model: {{modelFormat: {{name: huggingface}}, resources: {{limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}}}}}
    workerSpec:
      containers:
      - {{name: worker-container, resources: {{limits: {{nvidia.com/gpu: 1, nvidia.com/gpumem: {memory}}}}}}}
"""
    told = preview(text, "--from", "hami", "--gpu-memory", "40Gi", "-o", "translated").stderr
    said = 'gpu-share: "0.489" has no place: KServe gives workers the annotations of their predictor, where it is 0.196'
    assert (said in told) is is_said
