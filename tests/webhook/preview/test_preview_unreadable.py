import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.webhook.commands import POD, preview, run, unreadable
from tests.webhook.preview.previewed import made
from webhook.preview.objects import LARGEST_BYTES


@pytest.mark.parametrize(
    ("value", "shown", "quoted"),
    [
        ("0.2", "0.2 without quotes", '"0.2"'),
        ("0.10", "0.1", '"0.1'),
        ("1", "1 without quotes", '"1"'),
        ("2", "2 without quotes", '"2"'),
        ("true", "true without quotes", '"true"'),
        (".25", "0.25 without quotes", '"0.25"'),
        ("[a]", "", ""),
    ],
)
def test_a_share_without_quotes_is_said_with_line_and_fix(value: str, shown: str, quoted: str) -> None:
    line = unreadable(POD.replace('"0.2"', value))
    assert line.startswith("gpu-share: standard input:6: metadata.annotations.gpu-share: ")
    assert shown in line
    assert f"write gpu-share: {quoted}" in line


@pytest.mark.parametrize("value", ["20%", "0.2.", "0,2", "a"])
def test_a_text_needs_no_quotes(value: str) -> None:
    result = preview(POD.replace('"0.2"', value), code=0 if value == "20%" else 1)
    assert "without quotes" not in result.output


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("kind: [", ":", "invalid YAML"),
        ("a: b: c", ":1", "invalid YAML"),
        ("kind: Pod\nspec: *x\n", ":2", "invalid YAML"),
        ("\x00", ":1", "invalid YAML"),
        ("kind: Pod\n...\n%TAG !a! x\n---\n", ":3", "a line that begins with %TAG is a directive: remove it"),
        ("%YAML 1.1\n%YAML 1.1\n---\n", ":2", "duplicate %YAML directive"),
        ("kind: Pod\nspec: {containers: [{name: !foo a}]}", ":2", "invalid YAML"),
        ("? [a]\n: b", ":1", "invalid YAML"),
        ("[" * 60_000, ":1", "levels"),
        ("just words", ":1", "kind"),
        ("- kind: Pod", ":1", "kind"),
        ("metadata: {}", ":1", "kind"),
        ("kind: 5", ":1", "kind"),
        ("kind: List\nitems: 5", ":", "items"),
        ("kind: List\nitems: text", ":", ""),
        ("kind: List\nitems: {a: b}", ":", ""),
        ("kind: List\nitems:\n- kind: ConfigMap\n- text", ":4", "kind"),
        ("kind: Pod", ":1", "spec"),
        ("kind: Pod\nspec:", ":2", "spec"),
        ("kind: Pod\nmetadata: x\nspec: {}", ":2", "metadata: expected a mapping"),
        ("kind: Pod\nmetadata:\n  name: {a: b}\nspec: {}", ":3", "metadata.name: expected a string"),
        ("kind: Pod\nspec:\n  containers:\n  - image: x", ":4", "name"),
        ("kind: Pod\nspec:\n  containers:\n  - name: x\n    args: v", ":5", "args"),
        ("kind: Pod\nspec:\n  containers:\n  - name: x\n    env: [{name: A, value: 5}]", ":5", "value"),
        ("kind: Pod\nspec:\n  containers:\n  - name: x\n    args: [1]", ":5", "args[0]"),
        ("kind: Deployment\nspec: {}", ":2", "spec.template"),
        ("kind: Deployment", ":1", "spec.template"),
        ("kind: CronJob\nspec:\n  jobTemplate: {}", ":3", "spec.jobTemplate.spec.template"),
    ],
)
def test_an_input_that_cannot_be_read_is_one_line_with_its_place(text: str, place: str, words: str) -> None:
    line = unreadable(text)
    assert line.startswith(f"gpu-share: standard input{place}")
    assert words in line
    assert "`" not in line


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("!!timestamp x", "the tag !!timestamp does not fit here: write a plain value without it"),
        ("!!set {b}", "the tag !!set does not fit here"),
        ("!!binary Y", 'expected a text in base64, got "Y": correct it'),
        ("!!binary /w==", "expected a text in base64"),
        ("!!map b", "the tag !!map does not fit here"),
        ("!!bool x", 'expected true or false, got "x": correct it'),
        ("!!int ''", 'expected a number, got "": correct it'),
        (f"!!int {'1' * 5000}", "expected a number"),
        (".inf", "expected a number that is finite"),
        ("{~: b}", "a key must be a string: put it in quotes"),
        ("{? [b] : c}", "a key must be a string"),
        ("{on: b, true: c}", '"true" is here twice: remove one'),
        ("{<<: b}", "expected a mapping or a list of mappings behind <<"),
    ],
)
def test_what_json_does_not_have_is_said_with_its_line(value: str, words: str) -> None:
    line = unreadable(POD + f"  tolerations:\n  - more: {value}\n")
    assert line.startswith("gpu-share: standard input:12: ")
    assert words in line


@pytest.mark.parametrize("number", [f"0x{'f' * 200}", "9" * 300])
def test_a_large_number_is_a_float_as_the_api_machinery_has_it(number: str) -> None:
    assert "e+" in preview(POD + f"  number: {number}\n", "-o", "yaml").stdout


def test_merges_that_multiply_cost_little() -> None:
    rows = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12))]
    start = time.monotonic()
    line = unreadable(POD + "  more:\n" + "".join(f"    {row}\n" for row in rows))
    assert "its aliases multiply" in line
    assert time.monotonic() - start < 20  # 9^11 fields would take days


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("kind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n", 3),
        ("{{- if .Values.enabled }}\nkind: Pod\n{{- end }}\n", 1),
        ("kind: Pod\nmetadata:\n  labels:\n    {{- include x . | nindent 4 }}\n", 4),
    ],
)
def test_a_helm_template_is_said_to_be_one(text: str, line: int) -> None:
    said = unreadable(text)
    assert said.startswith(f'gpu-share: standard input:{line}: "{{{{')
    assert said.endswith('}}" is of a Helm template: give what helm template prints of the chart')


@pytest.mark.parametrize("opening", ["{{ ", "{"])
def test_braces_that_nothing_closes_cost_little(opening: str) -> None:
    start = time.monotonic()
    assert "a quote is not closed" in unreadable('kind: "' + opening * (900_000 // len(opening)))
    assert time.monotonic() - start < 5


def test_each_document_may_say_its_version_of_yaml() -> None:
    text = f"%YAML 1.1\n---\n{POD}...\n%YAML 1.1\n---\n{POD.replace('name: ', 'name: other-', 1)}"
    assert preview(text).stdout.count(": granted") == 2


def test_lines_of_a_text_may_begin_with_a_percent_sign() -> None:
    assert "granted" in preview(POD.replace("name: main", 'name: main\n    args: ["a\n%d b"]')).stdout


def test_braces_in_a_text_are_none() -> None:
    assert "granted" in preview(POD.replace("name: main", "name: main\n    args: ['{{ inputs.parameters.x }}']")).stdout


@pytest.mark.parametrize("sign", ["\x7f", "\x80", "\x85", "\u2028", "\ufeff", "\uffff", "\U0001f600", "'", "\u2028% "])
def test_json_is_read_as_json(sign: str) -> None:
    pod = yaml.safe_load(POD)
    pod["metadata"]["annotations"]["note"] = f"a {sign} b"
    pod["metadata"]["annotations"]["f:" + sign * 2000] = ""
    assert made(json.dumps(pod, ensure_ascii=False))["metadata"]["annotations"].items() >= {
        "note": f"a {sign} b", "f:" + sign * 2000: ""
    }.items()  # fmt: skip


def test_what_is_no_json_is_no_yaml_either_where_it_has_control_characters() -> None:
    assert "invalid YAML" in unreadable("{kind: Pod, more: a\x7f}")


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("metadata", {"name": "bad", "namespace": "elsewhere", "annotations": {"gpu-share": 1}}, "Pod elsewhere/bad"),
        ("metadata", {"name": 5}, "Pod (no name)"),
        ("metadata", 5, "Pod (no name)"),
        ("spec", {"containers": [{"name": "a", "args": "b"}]}, "Pod elsewhere/bad"),
        ("spec", 5, "Pod elsewhere/bad"),
    ],
)
def test_an_object_of_a_list_that_cannot_be_read_is_named_beside_what_the_others_get(
    write: Callable[[object], str], path: str, value: object, said: str
) -> None:
    good = yaml.safe_load(POD)
    bad = {**good, "metadata": {"name": "bad", "namespace": "elsewhere"}, path: value}
    other = {**good, "metadata": {**good["metadata"], "name": "other"}}
    ran = preview(write({"apiVersion": "v1", "kind": "List", "items": [good, bad, other]}), code=2)
    assert [line for line in ran.stdout.splitlines() if line.startswith("Pod")] == [
        "Pod default/web: granted", "Pod default/other: granted"
    ]  # fmt: skip
    (line,) = ran.stderr.splitlines()
    assert line.startswith("gpu-share: standard input:")
    assert f": {said}: {path}" in line


def test_what_follows_a_json_object_and_is_none_is_told() -> None:
    line = unreadable('{"kind": "Pod"}\nb\n')
    assert line.endswith(
        ":2: invalid YAML: this follows the end of the document: correct the lines above it, or begin another by ---"
    )


def test_a_text_that_is_not_utf_8_is_said_so() -> None:
    assert unreadable(b"kind: \xff").startswith("gpu-share: standard input: is not UTF-8")


def test_an_input_that_is_too_large_may_be_split_by_namespace() -> None:
    text = POD + "# " + "x" * LARGEST_BYTES
    line = unreadable(text)
    assert line == "gpu-share: standard input: larger than 8192 KiB: split it, for instance by namespace"


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    result = run("preview", tmp_path / name, code=2)
    assert "cannot be read" in result.stderr
    assert result.stdout == ""


def test_the_file_with_the_fault_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(POD)
    (tmp_path / "bad.yaml").write_text(POD.replace('"0.2"', "0.2"))
    result = run("preview", tmp_path / "good.yaml", tmp_path / "bad.yaml", code=2)
    assert f"{tmp_path}/bad.yaml:6: " in result.stderr


@pytest.mark.parametrize("option", [("-o", "table"), ("--what",), ("--policies", "pyproject.toml")])
def test_bad_usage_ends_with_2(option: tuple[str, ...]) -> None:
    assert preview(POD, *option, code=2).stdout == ""


def test_policies_that_cannot_be_used_end_with_2(tmp_path: Path) -> None:
    assert "cannot be read" in unreadable(POD, "--policies", tmp_path / "missing")
    (tmp_path / "_default.yaml").write_text("share:\n  maximum: 1\n")
    line = unreadable(POD, "--policies", tmp_path)
    assert line.startswith(f"gpu-share: {tmp_path}/_default.yaml:2: share.maximum: ")
    assert 'write "1"' in line


@pytest.mark.parametrize("output", ["explain", "diff", "yaml", "patch"])
def test_aliases_that_multiply_cost_little(output: str) -> None:
    rows = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 25))]
    text = POD + "  tolerations:\n  - value: x\n    more:\n" + "".join(f"      {row}\n" for row in rows)
    start = time.monotonic()
    result = run("preview", "-", "-o", output, given=text, code=None)
    assert result.exit_code in (0, 2)
    assert time.monotonic() - start < 20  # 3^24 values would take days


def test_a_structure_that_holds_itself_is_no_traceback() -> None:
    text = POD + "  tolerations: &t [{value: *t}]\n"
    for output in ("explain", "diff", "yaml", "patch"):
        assert preview(text, "-o", output, code=2).stderr.count("\n") == 1
