import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.commands import POD, preview, run

jsonschema: Any = pytest.importorskip("jsonschema")  # published without types

SHIPPED = Path("policies/files")


def schema(*options: str) -> Any:
    made: dict[str, Any] = json.loads(run("policy", "schema", *options).stdout)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def test_the_shipped_directory_is_valid() -> None:
    result = run("policy", "check", SHIPPED)
    assert ": valid, " in result.stdout
    assert "2 namespaces" in result.stdout
    assert run("policy", "check").stdout.endswith(result.stdout.partition(":")[2])


def test_every_problem_is_reported_with_file_line_and_field(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: x\nshare:\n  maximum: 1\n")
    (tmp_path / "team.yaml").write_text("\nenabeld: true\n")
    (tmp_path / "Bad.yaml").write_text("")
    result = run("policy", "check", tmp_path, code=1)
    assert result.stdout == ""
    assert [line.split(": ")[:2] for line in result.stderr.splitlines()] == [
        [f"{tmp_path}/Bad.yaml", "expected _cluster.yaml, _default.yaml or <namespace>.yaml"],
        [f"{tmp_path}/_default.yaml:1", "mode"],
        [f"{tmp_path}/_default.yaml:3", "share.maximum"],
        [f"{tmp_path}/team.yaml:2", "enabeld"],
    ]


def test_a_twin_beside_the_exact_name_is_a_problem_that_says_what_to_do(tmp_path: Path) -> None:
    for name in ("_cluster.yaml", "_default.yaml", "_cluster.yml", "_DEFAULT.yaml"):
        (tmp_path / name).write_text("")
    assert run("policy", "check", tmp_path, code=1).stderr.splitlines() == [
        f"{tmp_path}/{name}: expected _cluster.yaml, _default.yaml or <namespace>.yaml: rename or remove the file"
        for name in ("_DEFAULT.yaml", "_cluster.yml")
    ]


def test_a_pipe_in_the_directory_is_a_problem_and_no_wait(tmp_path: Path) -> None:
    for name in ("team.yaml", "kustomization.yaml", "Kustomization"):
        os.mkfifo(tmp_path / name)
    told = run("policy", "check", tmp_path, code=1).stderr
    assert told.splitlines() == [
        f"{tmp_path}/{name}: cannot be read: expected a file, got a named pipe"
        for name in ("kustomization.yaml", "team.yaml")
    ]


@pytest.mark.parametrize("place", ["missing", "file"])
def test_what_is_no_directory_is_bad_usage(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run("policy", "check", tmp_path / place, code=2).stdout == ""


@pytest.mark.parametrize(
    "command",
    [
        ["policy", "check"],
        ["policy", "show", "team", "--policies"],
        ["preview", "-", "--policies"],
        ["webhook", "--cert", "c", "--key", "k", "--policies"],
    ],
    ids=lambda command: command[0] + command[1],
)
def test_a_file_in_the_place_of_the_directory_is_told_which_directory_it_is_in(command: list[str]) -> None:
    result = run(*command, "policies/files/_default.yaml", code=2)
    says = 'policies/files/_default.yaml is a file: name its directory, "policies/files"'
    assert says in " ".join(result.stderr.split())


def test_paths_begin_at_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "team.yaml").write_text("mode: warn\nshare:\n  maximum: 1\n")
    monkeypatch.chdir(tmp_path)
    assert run("policy", "check", "files", code=1).stderr.startswith("files/team.yaml:3: share.maximum: ")
    assert run("policy", "check", ".", code=0).stderr.startswith(".: warning: no policy files")


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda file: str(file.stem))
def test_the_schema_fits_the_shipped_files(file: Path) -> None:
    options = ["--cluster"] if file.name == "_cluster.yaml" else []
    schema(*options).validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    "text",
    [
        "enabeld: true",
        "mode: off",
        "share: {maximum: 0.5}",
        "share: {maximum: half}",
        "share: {maximum: '0.2222'}",
        "share: {pod: '1'}",
        "strategy: none",
        "strategy: whole",
        "share: {whole: gpu}",
        "placement: {tolerations: [{kee: a}]}",
        f"placement: {{tolerations: [{'{key: a}, ' * 65}]}}",
        "memory: {headroom: 0}",
        "[]",
    ],
)
def test_the_schema_rejects_what_the_check_rejects(text: str, tmp_path: Path) -> None:
    assert list(schema().iter_errors(yaml.safe_load(text)))
    (tmp_path / "_default.yaml").write_text(text)
    run("policy", "check", tmp_path, code=1)


@pytest.mark.parametrize(
    "text",
    [
        "vgpusPerGpu: 0",
        "vgpus: 1",
        "mps: {pipeDirectory: x}",
        "resourceNames: {mps: x}",
        "nodes: [{node: a}]",
        "nodes: [{mig: none}]",
        "nodes: [{offer: null, node: a}]",
        "nodes: [{offer: mig}]",
        "nodes: [{offer: none, node: ''}]",
        "nodes: [{offer: none, indexes: []}]",
    ],
)
def test_the_schema_of_the_cluster_rejects_what_the_check_rejects(text: str, tmp_path: Path) -> None:
    assert list(schema("--cluster").iter_errors(yaml.safe_load(text)))
    (tmp_path / "_cluster.yaml").write_text(text)
    run("policy", "check", tmp_path, code=1)


def test_show_names_the_source_of_every_field() -> None:
    lines = run("policy", "show", "team-vision", "--policies", SHIPPED).stdout.splitlines()
    by_field = {line.partition(":")[0].strip(): line.rpartition("# ")[2] for line in lines[1:]}
    assert "team-vision" in lines[0]
    assert by_field["maximum"] == "team-vision.yaml:3"
    assert by_field["headroom"] == "team-vision.yaml:5"
    assert by_field["minimum"].startswith("_default.yaml:")
    assert by_field["schedulerName"].startswith("_default.yaml:")


def test_what_is_shown_is_a_policy_file_that_says_the_same(tmp_path: Path) -> None:
    shown = run("policy", "show", "team-vision", "--policies", SHIPPED).stdout
    (tmp_path / "team-vision.yaml").write_text(shown)
    again = run("policy", "show", "team-vision", "--policies", tmp_path).stdout
    assert yaml.safe_load(again) == yaml.safe_load(shown)
    schema().validate(yaml.safe_load(shown))


def test_built_in_defaults_and_exempt_namespaces_are_said_so(tmp_path: Path) -> None:
    shown = run("policy", "show", "anything", "--policies", tmp_path).stdout
    assert "# built-in default" in shown
    assert "is exempt" in run("policy", "show", "kube-system", "--policies", tmp_path).stdout
    assert "is gpu-share's own" in run("policy", "show", "gpu-share", "--policies", tmp_path).stdout


def test_show_of_broken_policies_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: x")
    result = run("policy", "show", "team", "--policies", tmp_path, code=2)
    assert result.stderr.startswith(f"gpu-share: {tmp_path}/_default.yaml:1: mode: ")
    assert "invalid namespace" in run("policy", "show", "Not_A_Namespace", "--policies", SHIPPED, code=2).stderr


def test_show_of_a_broken_namespace_says_so_and_of_another_one_shows_it(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("enabled: true\nmode: x")
    result = run("policy", "show", "team", "--policies", tmp_path, code=2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"gpu-share: {tmp_path}/team.yaml:2: mode: ")
    assert line.endswith("the policy of the namespace team is broken: correct the file")
    shown = run("policy", "show", "other", "--policies", tmp_path)
    assert (shown.stdout.splitlines()[0], shown.stderr) == ("# The policy of the namespace other", "")


def test_preview_denies_in_a_broken_namespace_and_warns_of_it_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("enabled: true\nmode: x")
    warning = f"gpu-share: warning: {tmp_path}/team.yaml:2: mode: "
    broken = preview(POD, "--policies", tmp_path, "-n", "team", code=1)
    assert broken.stdout.startswith(f"Policies: {tmp_path}\nPod team/web: denied, PolicyBroken\n")
    assert "(team.yaml:2)" in broken.stdout
    other = preview(POD, "--policies", tmp_path, "-n", "other")
    assert other.stdout.startswith(f"Policies: {tmp_path}\nPod other/web: granted\n")
    assert broken.stderr.startswith(warning)
    assert other.stderr.startswith(warning)
    assert "pods with a share are denied in the namespace team" in other.stderr


def test_every_problem_is_reported_although_one_of_them_is_only_between_files(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("share: {maximum: '0.5'}")
    (tmp_path / "a.yaml").write_text("share: {minimum: '0.6'}")
    (tmp_path / "b.yaml").write_text("mode: x")
    lines = run("policy", "check", tmp_path, code=1).stderr.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{tmp_path}/a.yaml:1", f"{tmp_path}/b.yaml:1"]
