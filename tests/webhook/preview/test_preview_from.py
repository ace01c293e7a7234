import pytest
import yaml

from tests.webhook.commands import POD, preview, run

HAMI = """\
apiVersion: v1
kind: Pod
metadata: {name: gpu-pod, namespace: team-vision}
spec:
  schedulerName: hami-scheduler
  containers:
  - name: main
    image: vllm/vllm-openai:v0.9.0
    args: [--model=x]
    resources:
      limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 30000, cpu: 2}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: app, resources: {limits: {aliyun.com/gpu-mem: 3}}}
"""
FROM_HAMI = ("--from", "hami", "--gpu-memory", "81559Mi")
FROM_ALIYUN = ("--from", "aliyun", "--gpu-memory", "15360Mi")


def test_a_pod_of_hami_is_translated_and_then_previewed_as_any_other() -> None:
    text = preview(HAMI, *FROM_HAMI).stdout
    for words in (
        "Pod team-vision/gpu-pod: granted",
        'From HAMi: container "main": nvidia.com/gpumem: 30000 MiB of the GPU\'s 81559 MiB is 0.368, rounded up',
        "schedulerName: hami-scheduler is removed",
        '"main" asks for 0.368 of a GPU by gpu-share',
        "0.368 x 10 vGPUs per GPU = 3.68, rounded up to 4",
    ):
        assert words in text
    assert preview(HAMI).stdout != text


def test_the_diff_is_from_the_pod_as_written_to_the_pod_as_admitted() -> None:
    made = preview(HAMI, *FROM_HAMI, "-o", "diff")
    lines = made.stdout.splitlines()
    for line in ("-  schedulerName: hami-scheduler", "-        nvidia.com/gpumem: 30000", "+    gpu-share: '0.368'"):
        assert line in lines
    assert "nvidia.com/gpumem" in made.stderr


@pytest.mark.parametrize(("text", "options"), [(HAMI, FROM_HAMI), (DEPLOYMENT, FROM_ALIYUN)])
def test_what_is_translated_is_what_is_admitted_without_the_option(text: str, options: tuple[str, ...]) -> None:
    translated = preview(text, *options, "-o", "translated").stdout
    assert "aliyun.com" not in translated
    assert "gpumem" not in translated
    assert "gpu-share.dev/grant" not in translated
    assert preview(translated, "-o", "yaml").stdout == preview(text, *options, "-o", "yaml").stdout
    assert preview(translated, *options, "-o", "translated").stdout == translated


def test_the_annotation_goes_to_the_pod_template() -> None:
    (made,) = yaml.safe_load_all(preview(DEPLOYMENT, *FROM_ALIYUN, "-o", "translated").stdout)
    template = made["spec"]["template"]
    assert template["metadata"]["annotations"] == {"gpu-share": "0.2"}
    assert template["spec"]["containers"] == [{"name": "main", "image": "app"}]
    assert "annotations" not in made["metadata"]


def test_fields_of_a_custom_resource_are_translated_where_they_stand() -> None:
    notebook = HAMI.replace("kind: Pod", "kind: ServingRuntime").replace("v1\nkind", "serving.kserve.io/v1alpha1\nkind")
    made = yaml.safe_load(preview(notebook, *FROM_HAMI, "-o", "translated").stdout)
    assert "schedulerName" not in made["spec"]
    assert made["spec"]["annotations"] == {"gpu-share": "0.368"}
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": 2}}


def test_a_pod_that_cannot_be_translated_is_named_and_the_others_are_previewed() -> None:
    parts = HAMI.replace("gpu: 1", "gpu: 2").replace("gpu-pod", "parts")
    made = preview(f"{HAMI}---\n{parts}", *FROM_HAMI, code=2)
    assert "Pod team-vision/gpu-pod: granted" in made.stdout
    assert "parts" not in made.stdout
    assert 'Pod team-vision/parts: not translated from HAMi: container "main": nvidia.com/gpu: 2 asks' in made.stderr
    written = [*yaml.safe_load_all(preview(f"{HAMI}---\n{parts}", *FROM_HAMI, "-o", "translated", code=2).stdout)]
    assert written[1] == yaml.safe_load(parts)


def test_a_denied_pod_stays_as_written_in_yaml() -> None:
    large = HAMI.replace("30000", "80000")
    made = preview(large, *FROM_HAMI, "-o", "yaml", code=1)
    assert yaml.safe_load(made.stdout) == yaml.safe_load(large)
    assert "ShareAboveMaximum" in made.stderr


@pytest.mark.parametrize("text", ["81559", "81559 MiB", "many", "0Gi", "-1Gi", "1Ki", "1e400Gi", "1"])
def test_the_memory_of_a_gpu_has_a_unit(text: str) -> None:
    made = preview(HAMI, "--from", "hami", "--gpu-memory", text, code=2)
    assert "expected the memory of a GPU with its unit" in made.stderr


@pytest.mark.parametrize("text", ["80Gi", "81920Mi", "85899345920"])
def test_the_same_memory_may_be_written_in_several_ways(text: str) -> None:
    made = preview(HAMI, "--from", "hami", "--gpu-memory", text).stdout
    assert made == preview(HAMI, "--from", "hami", "--gpu-memory", "80Gi").stdout


@pytest.mark.parametrize(
    "options", [("-o", "translated"), ("--gpu-memory", "80Gi"), ("--from", "hami", "-o", "patch"), ("--from", "kai")]
)
def test_options_that_contradict_each_other_are_bad_usage(options: tuple[str, ...]) -> None:
    assert run("preview", "-", *options, given=HAMI, code=2).stdout == ""


WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: it, namespace: ns}
spec:
  schedulerName: hami-scheduler
  templates:
  - name: main
    container:
      image: busybox
      resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 30000}}
"""
IN_DEFAULTS = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: it, namespace: ns}
spec:
  templateDefaults:
    container: {resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 30000}}}
  templates:
  - {name: main, container: {image: busybox}}
  - {name: other, script: {image: busybox, source: a}}
"""


def test_a_template_of_a_workflow_is_as_translated_though_the_workflow_names_hamis_scheduler() -> None:
    written = preview(WORKFLOW, *FROM_HAMI, "-o", "translated").stdout
    assert "gpumem" not in written
    assert yaml.safe_load(written)["spec"]["templates"][0]["schedulerName"] == "default-scheduler"
    assert "Workflow ns/it, spec.templates[0]: granted" in preview(written).stdout
    assert preview(written, *FROM_HAMI, "-o", "translated").stdout == written


@pytest.mark.parametrize("output", ["explain", "translated", "yaml"])
def test_resources_that_a_template_has_of_its_workflow_are_said_to_be_in_the_way(output: str) -> None:
    result = preview(IN_DEFAULTS, *FROM_HAMI, "-o", output, code=2)
    assert (
        "Workflow ns/it, spec.templates[0]: not translated from HAMi: containers of its pod would stay, as another "
        "place in the Workflow sets it too: write it where the pod stands"
    ) in result.stderr
    assert "spec.templates[0]: granted" not in result.stdout
    if output != "explain":
        assert yaml.safe_load(result.stdout) == yaml.safe_load(IN_DEFAULTS)


def test_the_memory_of_a_gpu_in_the_environment_is_of_translations_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_SHARE_PREVIEW_GPU_MEMORY", "40Gi")
    assert "Pod default/web: granted" in preview(POD).stdout
    assert "add --from" in preview(POD, "--gpu-memory", "40Gi", code=2).stderr


def test_standard_input_is_read_once() -> None:
    assert "standard input can be read once" in preview(POD, "-", code=2).stderr


LEFT = {
    "a kind that is not known": (
        "apiVersion: a/v1\nkind: Server\nmetadata: {name: s}\nspec: {resources: {limits: {nvidia.com/gpumem: 2}}}\n",
        "Server s: spec.resources.limits has nvidia.com/gpumem, which is in no pod that is known",
    ),
    "a quota": (
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {limits.nvidia.com/gpumem: 8000}}\n",
        "ResourceQuota q: spec.hard has limits.nvidia.com/gpumem, which is in no pod that is known",
    ),
    "beside the pods of an object": (
        """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: v}
spec:
  runPolicy: {schedulingPolicy: {minResources: {nvidia.com/gpu: 2}}}
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - {name: pytorch, image: x, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}}
""",
        "PyTorchJob v: spec.runPolicy.schedulingPolicy.minResources has nvidia.com/gpu, which is in no pod",
    ),
}


@pytest.mark.parametrize(("text", "said"), LEFT.values(), ids=LEFT)
def test_what_of_the_other_systems_resources_stays_is_named(text: str, said: str) -> None:
    told = preview(text, "--from", "hami", "--gpu-memory", "40Gi", "-o", "translated", code=2).stderr
    assert f"gpu-share: {said}" in told
    assert told.count("which is in no pod") == 1


def test_what_the_status_of_an_object_says_of_them_is_nobodys_to_write() -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {nvidia.com/gpu: '8'}}\n"
    assert "which is in no pod" not in preview(node, "--from", "hami", "-o", "translated").stderr
