"""What a contributor starts with: the list of targets, the hooks, the forms for issues."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command_line import options
from tests.docs.pages import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
XIDS = "XIDs 13, 31, 43, 45, 68 and 109"


def _recipe(target: str) -> list[str]:
    """Give the commands of a target, as a shell at the root would get them."""
    (recipe,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return [line.removeprefix("\t@").replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]


def _hooks() -> list[dict[str, Any]]:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    hooks: list[dict[str, Any]] = local["hooks"]
    return hooks


def test_make_help_lists_every_target_with_what_it_does() -> None:
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607
    targets = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0].split()
    assert sorted(re.findall(r"^([a-z-]+)  +\S", shown, re.MULTILINE)) == sorted(targets)


def test_the_hooks_do_what_make_check_does_and_need_no_network() -> None:
    commands = [hook["entry"].replace(" --force-exclude", "") for hook in _hooks()]
    checked = [re.sub(r"( --check)? \.$", "", command) for command in _recipe("check")]
    assert commands == checked
    assert {hook["language"] for hook in _hooks()} == {"system"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_for_issues_asks_for_something_and_says_what_for(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_there_are_forms_for_a_bug_a_denied_pod_and_a_framework() -> None:
    assert [path.stem for path in FORMS] == ["bug", "denied", "framework"]


def test_the_licence_is_the_one_that_the_project_declares() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert re.sub(r"\s+", " ", text).strip().startswith("Apache License Version 2.0, January 2004")
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("page", ["docs/operations.md", "docs/decisions/0009-a-gpu-comes-back-on-evidence.md"])
def test_the_xids_of_programs_are_those_of_the_option(page: str) -> None:
    (default,) = (option.default for _, option in options() if option.name == "application_xids")
    assert re.findall(r"\d+", XIDS) == str(default).split(",")
    assert XIDS in (ROOT / page).read_text()
