import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.webhook.commands import POD, patch, preview, run

TEMPLATE = {
    "metadata": {"annotations": {"gpu-share": "0.2"}},
    "spec": {"containers": [{"name": "main", "image": "app"}]},
}


def workload(kind: str, spec: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "it", "namespace": "ns"}, **spec})


WORKLOADS: list[tuple[str, dict[str, Any]]] = [
    ("Deployment", {"spec": {"template": TEMPLATE}}),
    ("StatefulSet", {"spec": {"template": TEMPLATE}}),
    ("DaemonSet", {"spec": {"template": TEMPLATE}}),
    ("ReplicaSet", {"spec": {"template": TEMPLATE}}),
    ("ReplicationController", {"spec": {"template": TEMPLATE}}),
    ("Job", {"spec": {"template": TEMPLATE}}),
    ("PodTemplate", {"template": TEMPLATE}),
    ("CronJob", {"spec": {"jobTemplate": {"spec": {"template": TEMPLATE}}}}),
]


def test_the_module_runs_as_a_command() -> None:
    command = [sys.executable, "-m", "gpu_share", "preview", "policies/examples/5-too-large.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ShareAboveMaximum" in done.stdout
    assert done.stderr == ""


def test_explain_says_policy_arithmetic_changes_and_warnings() -> None:
    text = preview(POD.replace("0.2", "0.25")).stdout
    for words in (
        "Pod default/web: granted",
        "Policy: _default.yaml.",
        '"main" asks for 0.25 of a GPU by gpu-share',
        "0.25 x 10 vGPUs per GPU = 2.5, rounded up to 3: 3 x gpu-share.dev/vgpu",
        "Framework: tensorflow-serving",
        "add /spec/containers/0/args = [--per_process_gpu_memory_fraction=0.25]",
        "Warning: ",
    ):
        assert words in text


def test_a_node_that_the_pod_names_is_denied_and_one_that_a_cluster_has_given_it_is_not() -> None:
    written = json.loads(workload("Pod", TEMPLATE))
    written["spec"]["nodeName"] = "node-1"
    assert 'names its node, "node-1"' in preview(json.dumps(written), code=1).stdout
    written["metadata"]["uid"] = "0a"
    assert "names its node" not in preview(json.dumps(written)).stdout


def running(text: str) -> str:
    """The pod of *text* as a cluster has it, granted by the built-in policy."""
    granted = yaml.safe_load(preview(text, "-o", "yaml").stdout)
    granted["metadata"]["uid"] = "0a"
    granted["spec"]["nodeName"] = "node-1"
    return json.dumps(granted)


def test_what_the_webhook_wrote_into_a_pod_of_a_cluster_is_not_held_against_it(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("strategy: time-slicing\n")
    (tmp_path / "_cluster.yaml").write_text("vgpusPerGpu: 20\n")
    lines = preview(running(POD), "--policies", tmp_path, "-o", "diff").stdout.splitlines()
    changed = [line for line in lines if line.startswith(("+", "-")) and "annotations" not in line]
    assert any("gpu-share.dev/vgpu-timesliced: '4'" in line for line in changed)
    assert "-  hostIPC: true" in changed
    assert not any("nodeName" in line or "args" in line for line in changed)


def test_of_a_pod_of_a_cluster_that_is_as_it_would_be_now_nothing_changes() -> None:
    assert "Nothing is left to change" in preview(running(POD)).stdout
    assert preview(running(POD), "-o", "diff").stdout == ""
    assert preview(running(POD), "-o", "patch").stdout == "[]\n"


def test_patch_is_a_json_array_that_makes_the_yaml() -> None:
    patched = jsonpatch.apply_patch(yaml.safe_load(POD), patch(POD))
    assert yaml.safe_load(preview(POD, "-o", "yaml").stdout) == patched
    assert patched["spec"]["hostIPC"] is True


def test_patch_of_what_is_untouched_is_an_empty_array() -> None:
    assert preview(POD.replace("gpu-share", "other"), "-o", "patch").stdout == "[]\n"


def test_patch_of_what_is_granted_already_is_an_empty_array() -> None:
    assert patch(preview(POD, "-o", "yaml").stdout) == []
    assert "Nothing is left to change" in preview(preview(POD, "-o", "yaml").stdout).stdout


@pytest.mark.parametrize("text", ["", POD + "---\n" + POD, "kind: ConfigMap\n"])
def test_patch_takes_one_pod(text: str) -> None:
    result = preview(text, "-o", "patch", code=2)
    assert "takes one pod" in result.stderr
    assert result.stdout == ""


def test_diff_shows_what_changes() -> None:
    lines = preview(POD, "-o", "diff").stdout.splitlines()
    assert any(line.startswith("+") and "gpu-share.dev/vgpu" in line for line in lines)
    assert not any(line.startswith("-") and not line.startswith("---") for line in lines)
    assert preview(POD.replace("gpu-share", "other"), "-o", "diff").stdout == ""


@pytest.mark.parametrize("output", ["explain", "diff", "yaml", "patch"])
def test_a_denied_pod_ends_with_1_in_every_form(output: str) -> None:
    result = preview(POD.replace("0.2", "0,2"), "-o", output, code=1)
    assert "ShareMalformed" in (result.stdout if output == "explain" else result.stderr)
    if output == "yaml":
        assert yaml.safe_load(result.stdout) == yaml.safe_load(POD.replace("0.2", "0,2"))


@pytest.mark.parametrize("output", ["diff", "yaml", "patch"])
def test_warnings_go_to_stderr_where_stdout_is_read_by_programs(output: str) -> None:
    result = preview(POD.replace("0.2", "0.25"), "-o", output)
    assert "rounded up to 3" in result.stderr
    assert "rounded up to 3" not in result.stdout


@pytest.mark.parametrize(("kind", "spec"), WORKLOADS)
def test_every_kind_that_holds_a_pod_template_is_read(kind: str, spec: dict[str, Any]) -> None:
    text = workload(kind, spec)
    assert f"{kind} ns/it: granted" in preview(text).stdout
    made = yaml.safe_load(preview(text, "-o", "yaml").stdout)
    assert made["metadata"] == {"name": "it", "namespace": "ns"}
    assert '"gpu-share.dev/vgpu": "2"' in json.dumps(made)
    assert patch(text)[0]["path"].startswith("/spec/containers/0/")


@pytest.mark.parametrize("kind", ["List", "PodList", "DeploymentList"])
def test_lists_are_looked_into(kind: str) -> None:
    inner = [yaml.safe_load(POD), {"kind": "ConfigMap", "data": {"a": "1"}}, yaml.safe_load(POD)]
    result = preview(json.dumps({"apiVersion": "v1", "kind": kind, "items": inner}), "-o", "yaml")
    made = yaml.safe_load(result.stdout)
    assert [("hostIPC" in item.get("spec", {})) for item in made["items"]] == [True, False, True]
    assert made["items"][1] == inner[1]


def test_other_kinds_and_their_order_stay() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": None, "data": {"a": "yes", "n": "012", "t": "1e3"}}
    text = "\n---\n".join([json.dumps(other), POD, "# nothing", json.dumps(other)])
    made = list(yaml.safe_load_all(preview(text, "-o", "yaml").stdout))
    assert [one["kind"] for one in made] == ["ConfigMap", "Pod", "ConfigMap"]
    assert made[0]["data"] == other["data"]
    assert "metadata" in made[0]


def test_a_kind_of_another_group_is_left_alone() -> None:
    volcano = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"tasks": [{"replicas": 1}]}}
    assert "No pod" in preview(json.dumps(volcano)).stdout


@pytest.mark.parametrize(
    ("text", "options", "place"),
    [
        (POD, (), "default"),
        (POD.replace("name: web", "name: web\n  namespace: team-vision"), (), "team-vision"),
        (POD.replace("name: web", "name: web\n  namespace: team-vision"), ("-n", "other"), "other"),
        (workload(*WORKLOADS[0]), ("-n", "team-language"), "team-language"),
    ],
)
def test_the_namespace_is_the_options_the_files_or_default(text: str, options: tuple[str, ...], place: str) -> None:
    assert f" {place}/" in preview(text, *options).stdout


def test_json_as_programs_write_it_is_read() -> None:
    on = yaml.safe_load(POD)
    on["metadata"]["annotations"]["note"] = "smile \U0001f600 / \u00e9 \\ \t"
    for text in (json.dumps(on), json.dumps(on, ensure_ascii=False), json.dumps(on, indent="\t")):
        assert yaml.safe_load(preview(text, "-o", "yaml").stdout)["metadata"]["annotations"]["note"] == (
            "smile \U0001f600 / \u00e9 \\ \t"
        )


def test_several_files_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD)
    (tmp_path / "b.json").write_text(json.dumps(yaml.safe_load(POD.replace("web", "api"))))
    result = run("preview", tmp_path / "a.yaml", tmp_path / "b.json", "-", given=POD.replace("web", "cli"))
    assert [line for line in result.stdout.splitlines() if line.startswith("Pod")] == [
        "Pod default/web: granted",
        "Pod default/api: granted",
        "Pod default/cli: granted",
    ]


def test_no_pod_is_said_so() -> None:
    assert preview("").stdout == "No pod and no pod template here.\n"


def test_a_share_on_the_workload_instead_of_its_template_is_warned_about() -> None:
    on = json.loads(workload("Deployment", {"spec": {"template": {"spec": TEMPLATE["spec"]}}}))
    on["metadata"]["annotations"] = {"gpu-share": "0.2"}
    assert "gpu-share is on the Deployment" in preview(json.dumps(on)).stdout


def test_aliases_do_not_tie_two_containers_together() -> None:
    text = POD.replace("image: tensorflow/serving", "image: app\n    resources: &r {limits: {cpu: 1}}\n    env: &e []")
    text += "  - {name: other, image: app, resources: *r, env: *e}\n"
    first, second = yaml.safe_load(preview(text, "-o", "yaml").stdout)["spec"]["containers"]
    assert first["resources"]["limits"] == {"cpu": 1, "gpu-share.dev/vgpu": "2"}
    assert first["env"] == []
    assert second["resources"] == {"limits": {"cpu": 1}}
    assert second["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


@pytest.mark.parametrize(
    ("share", "annotations", "words", "missing"),
    [
        ("0.95", {}, "0.95 of the GPU", "whole GPUs"),
        ("0.2", {"gpu-share.dev/framework": "none"}, "", "name one by annotation"),
        ("1", {}, "whole GPUs", "of the GPU, the requested share"),
    ],
)
def test_the_explanation_does_not_contradict_the_changes(
    share: str, annotations: dict[str, str], words: str, missing: str
) -> None:
    on = yaml.safe_load(POD.replace("0.2", share))
    on["metadata"]["annotations"] |= annotations
    text = preview(json.dumps(on)).stdout
    assert words in text
    assert missing not in text
