"""The examples of the documents are run: commands give the output that is shown, files do what the text says."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpu_share import main
from policies.denial import Code
from policies.reading.store import load
from tests.docs.pages import PAGES, ROOT, Example, examples, name, run
from tests.policies.pods import GPU, VGPU, container, granted, mutated, only_container, pod

EXAMPLES = [(page, example) for page in PAGES for example in examples(page.read_text())]
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
REQUESTS = (ROOT / "docs" / "requests.md").read_text()
FRAMEWORKS = (ROOT / "docs" / "frameworks.md").read_text()


@pytest.mark.parametrize("example", [example for _, example in EXAMPLES], ids=lambda example: example.command)
def test_a_command_of_the_documents_prints_what_they_show(example: Example) -> None:
    assert run(example) == example.output


def test_the_readme_shows_commands() -> None:
    assert [name(page) for page, _ in EXAMPLES].count("README.md") >= 3


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_make_target_of_the_documents_is_there(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)\b", page.read_text(), re.MULTILINE)) <= targets


def test_the_readme_says_how_to_try_and_how_to_test() -> None:
    assert {"demo", "test"} <= set(re.findall(r"^make ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("synopsis", re.findall(r"^gpu-share [a-z]+ .*--.*$", COMMANDS, re.MULTILINE))
def test_every_option_of_the_commands_is_an_option(synopsis: str) -> None:
    command = re.findall(r"[a-z]+", re.split(r" \[?-", synopsis)[0].removeprefix("gpu-share "))
    shown = CliRunner().invoke(main, [*command, "--help"])
    assert shown.exit_code == 0
    for option in re.findall(r"--[a-z-]+", synopsis):
        assert option in shown.output


def test_the_commands_of_the_synopsis_are_those_that_the_manifests_run() -> None:
    assert len(re.findall(r"^gpu-share [a-z]+ .*--.*$", COMMANDS, re.MULTILINE)) == 4


def test_every_denial_is_in_the_reference() -> None:
    codes = Code.__args__  # type: ignore[attr-defined] # a Literal's values
    assert len(codes) == 16
    for one in codes:
        assert f"`{one}`" in REQUESTS


def test_the_example_of_whole_gpus_does_what_the_page_says(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(# _cluster.yaml\n.*?)```", REQUESTS, re.DOTALL)
    for file, text in re.findall(r"# ([a-z_-]+\.yaml)\n(.*?)(?=# [a-z_-]+\.yaml\n|\Z)", example, re.DOTALL):
        (tmp_path / file).write_text(text)
    policies = load(tmp_path)
    for share, asked in (("2", {GPU: 2}), ("1", {GPU: 1}), ("0.2", {VGPU: 2})):
        grant = granted(pod(share), policies, "team-training")
        assert {grant.resource: grant.containers[0].vgpus} == asked
    assert granted(pod("1"), policies, "other").resource == VGPU

    offered = [("train-1", "Tesla T4", 0), ("n", "NVIDIA H200", 7), ("n", "NVIDIA H200", 0), ("n", "Tesla T4", 6)]
    assert [policies.cluster.strategy(node=n, model=m, index=i, otherwise="mps") for n, m, i in offered] == [
        "whole",
        "whole",
        "mps",
        "mps",
    ]


def test_the_framework_of_ones_own_gets_the_argument_that_the_page_says(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(# _cluster.yaml\n.*?)```", FRAMEWORKS, re.DOTALL)
    image, share, argument = re.findall(
        r"With it, `(\S+)` in a pod with `gpu-share: \"(.*)\"` gets the argument `(\S+)`\.", FRAMEWORKS
    )[0]
    (tmp_path / "_cluster.yaml").write_text(example)
    given = pod(share, {**container(), "image": image})
    assert only_container(mutated(given, load(tmp_path)))["args"] == [argument]


def test_the_entry_for_nim_sets_the_variable_of_version_2_and_lowers_that_of_version_1(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(frameworks:\n- name: nim\n.*?)```", FRAMEWORKS, re.DOTALL)
    (image,) = re.findall(r"`(nvcr\.io/nim/\S+)`", FRAMEWORKS)
    (tmp_path / "_cluster.yaml").write_text(example)
    policies = load(tmp_path)
    given = {**container(), "image": f"{image}:2.0.1"}
    assert only_container(mutated(pod("0.2", given), policies))["env"] == [
        {"name": "NIM_GPU_MEM_FRACTION", "value": "0.2"}
    ]
    given["env"] = [{"name": "NIM_KVCACHE_PERCENT", "value": "0.9"}]
    assert only_container(mutated(pod("0.2", given), policies))["env"] == [
        {"name": "NIM_KVCACHE_PERCENT", "value": "0.2"}
    ]
