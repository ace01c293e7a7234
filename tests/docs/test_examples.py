"""The README is run: its commands give the output it shows, and what it names is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from policies.reading.store import load
from tests.policies.pods import VGPU, granted, pod

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def _sessions() -> list[tuple[str, str]]:
    """Each `$ command` of the console blocks, and the output below it."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


@pytest.mark.parametrize(("command", "output"), _sessions())
def test_a_command_of_the_readme_prints_what_the_readme_shows(command: str, output: str) -> None:
    program, *arguments = command.split()
    assert program == "gpu-share"
    ran = subprocess.run(
        [sys.executable, "-m", "gpu_share", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.stderr) == (output, "")


def test_the_readme_shows_commands() -> None:
    assert len(_sessions()) >= 3


def test_every_make_target_of_the_readme_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", README))
    assert {"demo", "test"} <= named <= targets


def test_every_option_of_the_readme_is_an_option() -> None:
    for command, synopsis in re.findall(r"^gpu-share (\w+) (--.*)$", README, re.MULTILINE):
        shown = subprocess.run(
            [sys.executable, "-m", "gpu_share", command, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for option in re.findall(r"--[a-z-]+", synopsis):
            assert option in shown


def test_every_file_that_the_readme_names_is_there() -> None:
    for name in re.findall(r"`((?:policies|webhook|plugin|certs|tests|docs|manifests)/[\w./-]*)`", README):
        assert (ROOT / name).exists(), name


def test_every_denial_is_in_the_reference() -> None:
    code = (ROOT / "policies" / "denial.py").read_text()
    codes = re.findall(r'^    "([A-Z]\w+)",$', code, re.MULTILINE)
    assert len(codes) == 12
    for one in codes:
        assert f"`{one}`" in README


def test_the_example_of_whole_gpus_does_what_the_readme_says(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(# _cluster.yaml\n.*?)```", README, re.DOTALL)
    for name, text in re.findall(r"# ([a-z_-]+\.yaml)\n(.*?)(?=# [a-z_-]+\.yaml\n|\Z)", example, re.DOTALL):
        (tmp_path / name).write_text(text)
    policies = load(tmp_path)
    for share, asked in (("2", {"gpu-share.dev/gpu": 2}), ("1", {"gpu-share.dev/gpu": 1}), ("0.2", {VGPU: 2})):
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
