"""The front door: help, environment, exit codes, and how soon it answers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpu_share import main

ROOT = Path(__file__).parent.parent.parent


def _help(*command: str) -> str:
    ran = CliRunner().invoke(main, [*command, "--help"])
    assert ran.exit_code == 0
    return ran.output


@pytest.mark.parametrize("command", ["preview", "webhook", "plugin", "mps", "demo", "policy show", "certs issue"])
def test_every_option_says_its_variable(command: str) -> None:
    options = re.findall(r"--([a-z][a-z-]*)", _help(*command.split()).replace("-h, --help", ""))
    assert options
    for option in set(options) - {"simulate"}:
        assert f"GPU_SHARE_{option.replace('-', '_').upper()}" in _help(*command.split())


def test_an_option_can_come_from_the_environment() -> None:
    example = ROOT / "policies" / "examples" / "1-tensorflow-serving.yaml"
    ran = CliRunner().invoke(main, ["preview", str(example)], env={"GPU_SHARE_OUTPUT": "patch"})
    assert ran.output.startswith("[")


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["preview", "--output", "xml"], ["webhook"], ["plugin", "--allocation-policy", "random"]],
)
def test_bad_usage_ends_with_2(arguments: list[str]) -> None:
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 2
    assert "Traceback" not in ran.output


@pytest.mark.parametrize("arguments", [["nonsense"], ["webhook"], ["preview", "--output", "xml"]])
def test_bad_usage_is_said_in_one_line(arguments: list[str]) -> None:
    said = CliRunner().invoke(main, arguments).stderr
    assert said.startswith("gpu-share: ")
    assert said.count("\n") == 1


def test_a_file_that_is_not_there_is_named_in_one_line() -> None:
    ran = CliRunner().invoke(main, ["preview", "/no/such/file.yaml"])
    assert ran.exit_code == 2
    assert ran.stderr == "gpu-share: /no/such/file.yaml: cannot be read: No such file or directory\n"


def test_preview_loads_neither_server_nor_client() -> None:
    example = ROOT / "policies" / "examples" / "1-tensorflow-serving.yaml"
    program = (
        "import sys; from gpu_share import main\n"
        f"try: main(['preview', {str(example)!r}])\n"
        "except SystemExit: pass\n"
        "heavy = {'flask', 'gunicorn', 'gevent', 'grpc', 'rich', 'kubernetes', 'cryptography', 'pynvml'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n"


def test_output_into_a_closed_pipe_is_no_traceback() -> None:
    examples = sorted(str(path) for path in (ROOT / "policies" / "examples").glob("*.yaml"))
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "gpu_share", "preview", *examples],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert b"Traceback" not in ran.stderr
