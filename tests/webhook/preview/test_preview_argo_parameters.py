"""Words that Argo replaces in a template: by the values in its file, or by what nobody knows yet."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.commands import preview, run
from tests.webhook.preview.previewed import made, titles

TITLE = "Workflow ns/it, spec.templates[0]"
OWN, GLOBAL = "{{inputs.parameters.x}}", "{{workflow.parameters.x}}"
FROM_MAP = {"parameters": [{"name": "x", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "x"}}}]}
VLLM = {"image": "vllm/vllm-openai:v0.9.0", "command": ["vllm", "serve"]}


def parameters(**values: Any) -> dict[str, Any]:
    return {"parameters": [{"name": name, "value": value} for name, value in values.items()]}


def template(share: str = "0.2", annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    container = {"image": "my/train:1", **fields.pop("container", {})}
    metadata = {"annotations": {"gpu-share": share, **(annotations or {})}}
    return {"name": "main", "metadata": metadata, "container": container, **fields}


def workflow(*templates: dict[str, Any], **spec: Any) -> str:
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "it", "namespace": "ns"}}
    return yaml.safe_dump({**head, "spec": {"entrypoint": "main", **spec, "templates": [*templates]}}, sort_keys=False)


def steps(**arguments: Any) -> dict[str, Any]:
    return {"name": "all", "steps": [[{"name": "a", "template": "main", "arguments": parameters(**arguments)}]]}


def shell(text: str) -> dict[str, Any]:
    return {"image": "my/train:1", "command": ["sh", "-c", text]}


def by_reference(**arguments: Any) -> dict[str, Any]:
    step = {"name": "a", "templateRef": {"name": "it", "template": "main"}, "arguments": parameters(**arguments)}
    return {"name": "all", "steps": [[step]]}


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [
        (workflow(template(GLOBAL), arguments=parameters(x="0.2")), 0, "granted"),
        (workflow(template("{{ workflow.parameters.x }}"), arguments=parameters(x=0.2)), 0, "granted"),
        (workflow(template(OWN, inputs=parameters(x="0.2"))), 0, "granted"),
        (workflow(template(OWN, inputs={"parameters": [{"name": "x", "default": "0.2"}]})), 0, "granted"),
        (workflow(template(OWN, inputs=parameters(x=GLOBAL)), arguments=parameters(x="0.2")), 0, "granted"),
        (workflow(template("0.{{workflow.parameters.x}}"), arguments=parameters(x=2)), 0, "granted"),
        (
            workflow(template(GLOBAL), arguments=parameters(x="2")),
            1,
            "denied, ShareAboveMaximum, PodShareAboveMaximum",
        ),
        (
            workflow(template(OWN, inputs=parameters(x="0.2")), arguments=parameters(x="2")),
            1,
            "denied, ShareAboveMaximum, PodShareAboveMaximum",
        ),
        (workflow(template(OWN, inputs=parameters(x="2")), steps(x="0.2"), entrypoint="all"), 2, "not known"),
        (workflow(template(OWN, inputs=parameters(x="0.2")), steps(y="2"), entrypoint="all"), 0, "granted"),
        (workflow(template(OWN, inputs={"parameters": [{"name": "x", "valueFrom": {"path": "/x"}}]})), 2, "not known"),
        (workflow(template(OWN, inputs=parameters(x="0.2")), arguments=FROM_MAP), 2, "not known"),
        (
            workflow(template(OWN, inputs=parameters(x="0.2")), arguments={"parameters": [{"name": "x"}]}),
            2,
            "not known",
        ),
        (workflow(template(OWN, inputs=parameters(x="0.2")), arguments=parameters(y="2")), 0, "granted"),
        (workflow(template(GLOBAL), arguments={"parameters": [{"name": "x", "default": "0.2"}]}), 2, "not known"),
        (
            workflow(template(OWN, inputs={"parameters": [{**FROM_MAP["parameters"][0], "value": "0.2"}]})),
            2,
            "not known",
        ),
        (workflow(template(OWN, inputs=parameters(x="0.2")), by_reference(x="2"), entrypoint="all"), 2, "not known"),
        (workflow(template("{{=sprig.max(1, 2)}}")), 2, "not known"),
        (workflow(template("{{item}}")), 2, "not known"),
        (workflow(template(annotations={"gpu-share.dev/device": OWN})), 2, "not known"),
        (workflow(template(annotations={"gpu-share.dev/framework": OWN})), 2, "not known"),
        (workflow(template(annotations={"framework.gpu-share.dev/main": OWN})), 2, "not known"),
        (
            workflow(template(annotations={"gpu-share.dev/framework": GLOBAL}), arguments=parameters(x="vllm")),
            0,
            "granted",
        ),
        (workflow(template(annotations={OWN: "1"})), 2, "not known"),
        (workflow(template("0", container={"resources": {"limits": {"gpu-share.dev/vgpu": OWN}}})), 2, "not known"),
        (workflow(template("0", container={"resources": {"limits": {OWN: "1"}}})), 2, "not known"),
        (
            workflow(template("2", container={"args": ["--lr", OWN]})),
            1,
            "denied, ShareAboveMaximum, PodShareAboveMaximum",
        ),
        (workflow(template(container={"args": [f"--lr={OWN}"]})), 0, "granted"),
    ],
)
def test_a_verdict_is_by_values_that_the_file_has_and_else_there_is_none(text: str, code: int, verdict: str) -> None:
    assert {title: said for title, said in titles(text, code=code).items() if title == TITLE} == {TITLE: verdict}


def test_what_is_not_known_is_said_and_nothing_else_of_the_pod() -> None:
    result = preview(workflow(template(OWN)), code=2)
    said = f"gpu-share={OWN}: Argo replaces this, and preview does not know by what: write the value out"
    assert result.stderr == f"gpu-share: {TITLE}: {said}\n"
    assert f"  {said}.\n" in result.stdout
    assert "Changes" not in result.stdout


@pytest.mark.parametrize("output", ["explain", "yaml"])
def test_a_value_of_the_file_is_said_to_be_taken_for_granted(output: str) -> None:
    text = workflow(template(GLOBAL), arguments=parameters(x="0.2"))
    result = preview(text, "-o", output, code=2 if output == "yaml" else 0)
    said = f"arning: {GLOBAL}: judged by the values in the file, and whoever submits it may give others"
    assert said in result.stdout + result.stderr


def test_a_value_of_the_file_in_a_shells_text_is_said_to_be_one_that_others_may_replace() -> None:
    text = workflow(template(container=shell(f"vllm serve m {GLOBAL}")), arguments=parameters(x="--seed=1"))
    assert f"Warning: {GLOBAL}: judged by the values in the file" in preview(text).stdout


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (workflow(template(GLOBAL), arguments=parameters(x="0.2")), "nothing is written there, since it depends on"),
        (workflow(template(OWN)), "does not know by what"),
        (workflow(template(container={**VLLM, "args": [f"--gpu-memory-utilization={OWN}"]})), "does not know by what"),
        (
            workflow(
                template(container={**VLLM, "args": [f"--gpu-memory-utilization={GLOBAL}"]}),
                arguments=parameters(x="0.9"),
            ),
            "nothing is written there, since it depends on",
        ),
    ],
)
def test_what_depends_on_a_word_is_not_written(text: str, verdict: str) -> None:
    result = preview(text, "-o", "yaml", code=2)
    assert verdict in result.stderr
    assert yaml.safe_load(result.stdout) == yaml.safe_load(text)
    if "know" in verdict:
        assert preview(text, "-o", "diff", code=2).stdout == ""
        assert preview(text, "-o", "patch", code=2).stdout == ""


def test_a_word_that_nothing_depends_on_stays_in_what_is_written() -> None:
    args = ["m", f"--seed={OWN}", "--gpu-memory-utilization=0.9"]
    (after,) = made(workflow(template(container={**VLLM, "args": args})))["spec"]["templates"]
    assert after["container"]["args"] == ["m", f"--seed={OWN}", "--gpu-memory-utilization=0.2"]
    assert after["container"]["resources"]["limits"] == {"gpu-share.dev/vgpu": "2"}


@pytest.mark.parametrize("seed", [OWN, "5"])
@pytest.mark.parametrize(("setting", "code"), [("0.9", 1), ("0.1", 0)])
def test_a_word_in_a_shells_text_is_read_as_the_plain_text_that_it_becomes(seed: str, setting: str, code: int) -> None:
    shell = f"vllm serve m --seed={seed} --gpu-memory-utilization={setting}"
    text = workflow(template(container={"image": VLLM["image"], "command": ["sh", "-c", shell]}))
    assert titles(text, code=code) == {TITLE: "denied, MemoryArgumentAboveShare" if code else "granted"}


def test_a_word_that_may_be_a_memory_setting_is_said_not_to_be_looked_at() -> None:
    said = f"{OWN}: not known here, so what they say of GPUs and their memory is not looked at"
    assert said in preview(workflow(template(container={**VLLM, "args": ["m", OWN]}))).stdout
    assert "not looked at" not in preview(workflow(template(container={**VLLM, "args": [f"--lr={OWN}"]}))).stdout


@pytest.mark.parametrize(
    ("container", "is_said"),
    [
        (shell(f"vllm serve m {OWN}"), True),
        (shell(f"cd /w && {OWN}"), True),
        (shell(f'cd /w; exec "{OWN}" serve'), True),
        (shell(f"A=1 {OWN}"), True),
        (shell(f"vllm serve m --{OWN}"), True),
        (shell(f"/opt/{OWN}"), True),
        (shell(f"exec bash -c '{OWN}'"), True),
        (shell(f"vllm serve m --lr={OWN} {OWN}"), True),
        (shell(f"python t.py --lr={OWN} --seed {OWN} --out='/data/{OWN}/{OWN}'"), False),
        (shell(f"LR={OWN} python t.py"), False),
        ({"args": ["--lr", "5", f"/data/{OWN}"]}, False),
        ({"image": f"registry.local/{OWN}", "args": ["--model", "m"]}, True),
        ({"env": [{"name": f"NVIDIA_{OWN}", "value": "all"}]}, True),
        ({"env": [{"name": "LR", "value": OWN}]}, False),
    ],
)
def test_a_word_is_said_not_to_be_looked_at_unless_it_is_a_value(container: dict[str, Any], *, is_said: bool) -> None:
    result = run("preview", "-", given=workflow(template(container=container)), code=None)
    assert ("not looked at" in result.stdout or "not known" in result.stdout) == is_said


@pytest.mark.parametrize(
    ("container", "verdict"),
    [
        (shell(f"vllm serve m {OWN}"), "not known"),
        (shell(f"cd /w && {OWN}"), "not known"),
        (shell(f"python /opt/{OWN}.py"), "granted"),
        ({"env": [{"name": f"NVIDIA_{OWN}", "value": "all"}]}, "not known"),
        ({"env": [{"name": OWN, "value": "all"}]}, "not known"),
        ({"image": f"my/train:{OWN}"}, "granted"),
        ({**VLLM, "args": ["m", OWN]}, "granted"),  # the webhook lowers a setting there
    ],
)
def test_a_pod_that_a_word_may_have_denied_is_not_known(container: dict[str, Any], verdict: str) -> None:
    text = workflow(template(container=container), steps(x="--gpu-memory-utilization=0.95"), entrypoint="all")
    assert titles(text, code=0 if verdict == "granted" else 2)[TITLE] == verdict


def test_a_setting_by_a_parameter_is_compared_with_the_share_by_its_value(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("frameworks: {onConflict: deny}\n")
    for value, code in (("0.15", 0), ("0.9", 1)):
        container = {**VLLM, "args": [f"--gpu-memory-utilization={GLOBAL}"]}
        text = workflow(template(container=container), arguments=parameters(x=value))
        result = run("preview", "-", "--policies", tmp_path, given=text, code=code)
        assert ("stays" in result.stdout) == (code == 0)


def test_a_request_under_a_trial_is_not_called_malformed_for_a_word(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: warn\n")
    text = workflow(template(annotations={"gpu-share.dev/device": OWN}))
    assert ": not known" in run("preview", "-", "--policies", tmp_path, given=text, code=2).stdout
