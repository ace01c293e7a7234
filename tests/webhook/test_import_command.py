import json
from pathlib import Path

import pytest
import yaml

from tests.policies.migration.configurations import MPS, TIME_SLICED, config_map
from tests.webhook.commands import preview, run


def test_what_is_written_into_a_directory_is_valid(tmp_path: Path) -> None:
    made = run("policy", "import", "-", "--into", tmp_path / "new", given=TIME_SLICED)
    assert ": valid, " in run("policy", "check", tmp_path / "new").stdout
    written = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert written == json.loads(run("policy", "import", "-", "-o", "json", given=TIME_SLICED).stdout)["files"]
    assert all(text.strip() in made.stdout for text in written.values())


def test_a_pod_is_previewed_by_what_was_imported(tmp_path: Path) -> None:
    run("policy", "import", "-", "--into", tmp_path, given=TIME_SLICED)
    pod = "kind: Pod\nmetadata: {name: a, annotations: {gpu-share: '0.25'}}\nspec: {containers: [{name: a}]}\n"
    made = yaml.safe_load(preview(pod, "--policies", tmp_path, "-o", "yaml").stdout)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"gpu-share.dev/vgpu-timesliced": "1"}


def test_policies_that_are_there_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("mode: warn\n")
    made = run("policy", "import", "-", "--into", tmp_path, given=MPS, code=2)
    assert "exists already" in made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["_default.yaml"]
    assert (tmp_path / "_default.yaml").read_text() == "mode: warn\n"


def test_a_link_that_leads_to_nothing_is_there_and_nothing_is_written_through_it(tmp_path: Path) -> None:
    into, elsewhere = tmp_path / "policies", tmp_path / "elsewhere"
    into.mkdir()
    (into / "_cluster.yaml").symlink_to(elsewhere)
    made = run("policy", "import", "-", "--into", into, given=MPS, code=2)
    assert f"{into}/_cluster.yaml: exists already" in made.stderr
    assert not elsewhere.exists()
    assert [path.name for path in into.iterdir()] == ["_cluster.yaml"]


def test_what_is_left_to_decide_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("NAME  CONFIG\nm-1  mps\ns-1  sliced\n")
    text = config_map(mps=MPS, sliced=TIME_SLICED)
    asked = json.loads(run("policy", "import", "-", "-o", "json", given=text, code=1).stdout)
    assert len(asked["questions"]) == 3
    options = ("--default", "mps", "--nodes", tmp_path / "nodes")
    answered = json.loads(run("policy", "import", "-", "-o", "json", *options, given=text, code=1).stdout)
    assert [one for one in answered["questions"] if "which namespaces" not in one] == []
    assert yaml.safe_load(answered["files"]["_cluster.yaml"])["nodes"] == [{"node": "s-1", "offer": "time-slicing"}]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"\xff", "is not UTF-8"),
        (b"version: v2\n", "standard input:1: version: expected v1"),
        (b"a: 1\n" * 300_000, "larger than 1024 KiB"),
    ],
)
def test_what_cannot_be_read_is_one_line_for_each_problem(given: bytes, told: str) -> None:
    made = run("policy", "import", "-", given=given, code=2)
    assert made.stdout == ""
    assert told in made.stderr


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert "No such file" in run("policy", "import", tmp_path / "none", code=2).stderr
    assert "cannot be read" in run("policy", "import", tmp_path, code=2).stderr
    of_nodes = run("policy", "import", "-", "--nodes", tmp_path / "none", given=MPS, code=2).stderr
    assert of_nodes.endswith("/none: cannot be read (No such file or directory): name a list of nodes\n")


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    into = tmp_path / "file" / "directory"
    assert "cannot be written" in run("policy", "import", "-", "--into", into, given=MPS, code=2).stderr


def test_both_ways_to_say_the_default_exclude_each_other() -> None:
    made = run("policy", "import", "-", "--default", "a", "--no-default", given=config_map(a=MPS), code=2)
    assert "exclude each other" in made.stderr
