"""What `gpu-share policy check` warns of where kustomize's file in a directory of policy files lists other ones."""

from pathlib import Path

import pytest

from policies.reading.told import MOST_OF_A_FILE
from tests.webhook.commands import run
from tests.webhook.test_policy_warnings import warnings

LISTED = "configMapGenerator:\n- name: policies\n  files:\n  - _default.yaml\n  - team.yaml=./team.yaml\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Kustomization", ""),
        ("Kustomization", "kind: Kustomization\n"),
        ("kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\n"),
        ("kustomization.yml", ""),
    ],
)
def test_a_file_that_kustomize_does_not_ship_is_told_with_the_line_to_add(tmp_path: Path, name: str, kind: str) -> None:
    text = kind + LISTED
    assert warnings(tmp_path, **{"_default.yaml": "", "team.yaml": "", name: text}) == []
    (line,) = warnings(tmp_path, **{"new.yaml": ""})
    number = text.splitlines().index("  files:") + 1
    assert line == (
        f"/{name}:{number}: warning: configMapGenerator.files: new.yaml is not listed, so no cluster gets it: "
        "add the line `- new.yaml`"
    )


@pytest.mark.parametrize(
    ("entry", "key"),
    [("vision=team.yaml", "vision"), ("other.yaml=./team.yaml", "other.yaml"), ("team.yaml=team.yaml", "")],
)
def test_a_file_that_kustomize_ships_under_another_name_is_told(tmp_path: Path, entry: str, key: str) -> None:
    text = f"configMapGenerator:\n- name: a\n  files:\n  - _default.yaml\n  - {entry}\n"
    named = (
        "/Kustomization:3: warning: configMapGenerator.files: a cluster gets team.yaml under the name "
        f'"{key}": write the line as `- team.yaml`'
    )
    told = warnings(tmp_path, **{"_default.yaml": "", "team.yaml": "", "Kustomization": text})
    assert told == ([named] if key else [])


@pytest.mark.parametrize("text", ["resources: []", "configMapGenerator: 5", "configMapGenerator: [a]", "a: [", "", "5"])
def test_what_kustomize_is_told_otherwise_is_no_matter_of_the_check(tmp_path: Path, text: str) -> None:
    assert warnings(tmp_path, **{"_default.yaml": "", "Kustomization": text}) == []


def test_a_generator_without_files_ships_none(tmp_path: Path) -> None:
    (line,) = warnings(tmp_path, **{"_default.yaml": "", "Kustomization": "\nconfigMapGenerator:\n- name: a\n"})
    assert line.startswith("/Kustomization:2: warning: configMapGenerator.files: _default.yaml is not listed")


def test_a_policy_of_the_namespace_kustomization_is_one(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("mode: x")
    assert "kustomization.yaml:1: mode: " in run("policy", "check", tmp_path, code=1).stderr


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("gone.yaml", "gone.yaml"),
        ("./gone.yml", "gone.yml"),
        ("_cluster.yaml=gone.yaml", "gone.yaml"),
        ("more/gone.yaml", "more/gone.yaml"),
        ("notes.txt", "notes.txt"),
        ("more", "more"),  # a directory
        ("a" * 250 + ".yaml", "a" * 250 + ".yaml"),
        ('"a\\0"', "a\\x00"),
    ],
)
@pytest.mark.parametrize("name", ["Kustomization", "kustomization.yaml", "kustomization.yml"])
def test_a_file_that_kustomize_lists_and_that_is_not_there_is_told_with_its_line(
    tmp_path: Path, entry: str, path: str, name: str
) -> None:
    (tmp_path / "more").mkdir()
    (line,) = warnings(tmp_path, **{"_default.yaml": "", "team.yaml": "", name: f"{LISTED}  - {entry}\n"})
    assert line == (
        f'/{name}:6: warning: configMapGenerator.files: there is no file "{path}", so kustomize rejects it all: '
        "write it, or remove the line"
    )


@pytest.mark.parametrize("entry", ["more/there.txt", "a=more/there.txt", "https://example.com/a.yaml", "null", "[a]"])
def test_a_file_that_kustomize_finds_or_fetches_is_not_missed(tmp_path: Path, entry: str) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "there.txt").write_text("")
    files = {"_default.yaml": "", "team.yaml": "", "Kustomization": f"{LISTED}  - {entry}\n"}
    assert warnings(tmp_path, **files) == []


def test_of_very_many_that_are_not_there_some_are_told(tmp_path: Path) -> None:
    entries = "".join(f"  - gone-{number}.yaml\n" for number in range(40_000))
    told = warnings(tmp_path, **{"_default.yaml": "", "team.yaml": "", "Kustomization": LISTED + entries})
    assert len(told) == MOST_OF_A_FILE + 1
    assert "there is no file" in told[-2]
    assert told[-1].endswith(": warning: at least one more problem is not listed: correct the others first")
