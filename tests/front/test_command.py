"""The front door: help, environment, exit codes, and how soon it answers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gpu_share import main
from policies.reading import store
from program.options import Place
from tests.command_line import options

ROOT = Path(__file__).parent.parent.parent


def _help(*command: str) -> str:
    ran = CliRunner().invoke(main, [*command, "--help"])
    assert ran.exit_code == 0
    return ran.output


@pytest.mark.parametrize("command", ["preview", "webhook", "plugin", "mps", "demo", "policy show", "certs issue"])
def test_every_option_says_its_variable(command: str) -> None:
    found = re.findall(r"--([a-z][a-z-]*)", _help(*command.split()).replace("-h, --help", ""))
    assert found
    for option in set(found) - {"simulate"}:
        assert re.search(rf"GPU_SHARE_([A-Z]+_)?{option.replace('-', '_').upper()}\b", _help(*command.split()))


def test_options_that_share_a_variable_mean_the_same() -> None:
    """Or a value that is set for one of them would break the other."""
    meanings: dict[str, dict[str, list[str]]] = {}
    for command, option in options():
        if option.envvar:
            meaning = f"{option.opts[0]} {option.type!r} {option.default!r} {option.help}"
            meanings.setdefault(str(option.envvar), {}).setdefault(meaning, []).append(command)
    assert len(meanings) > 20
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_a_variable_for_one_command_does_not_reach_another() -> None:
    ran = CliRunner().invoke(
        main, ["plugin", "status", "--state-dir", "/no/such"], env={"GPU_SHARE_PREVIEW_OUTPUT": "patch"}
    )
    assert "plugin status: no plugin runs here" in ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_by_the_script(shell: str) -> None:
    ran = CliRunner().invoke(main, ["completion", shell])
    assert ran.exit_code == 0
    assert f"_GPU_SHARE_COMPLETE={shell}_complete" in ran.output


def test_completion_of_preview_asks_the_shell_for_files() -> None:
    environment = {"COMP_WORDS": "gpu-share preview ", "COMP_CWORD": "2", "_GPU_SHARE_COMPLETE": "bash_complete"}
    assert "file," in CliRunner().invoke(main, [], prog_name="gpu-share", env=environment).output


def test_completion_knows_commands_and_values() -> None:
    environment = {"COMP_WORDS": "gpu-share preview -o ", "COMP_CWORD": "3", "_GPU_SHARE_COMPLETE": "bash_complete"}
    ran = CliRunner().invoke(main, [], prog_name="gpu-share", env=environment)
    assert ran.output.split() == ["plain,explain", "plain,diff", "plain,yaml", "plain,patch", "plain,translated"]


def test_an_option_can_come_from_the_environment() -> None:
    example = ROOT / "policies" / "examples" / "1-tensorflow-serving.yaml"
    ran = CliRunner().invoke(main, ["preview", str(example)], env={"GPU_SHARE_PREVIEW_OUTPUT": "patch"})
    assert ran.stdout.startswith("[")


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["preview", "--output", "xml"], ["webhook"], ["plugin", "--allocation-policy", "random"]],
)
def test_bad_usage_ends_with_2(arguments: list[str]) -> None:
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 2
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["webhook"],
        ["preview", "--output", "xml"],
        ["certs", "issue", "--out", "out", "--dns", "fe80::1%eth0"],
    ],
)
def test_bad_usage_is_said_in_one_line(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, arguments).stderr
    assert said.startswith("gpu-share: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["policy", "check", "a", "b"], "Got unexpected extra argument (b)."),
        (["policy", "check", "--no"], "No such option '--no'."),
        (
            ["policy", "check", "README.md"],
            "Invalid value for '[DIRECTORY]': README.md is a file: name its directory, \".\".",
        ),
    ],
)
def test_sentences_of_bad_usage_end_before_the_next_one(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert CliRunner().invoke(main, arguments).stderr == f"gpu-share: {said} See main policy check --help\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["webhook", "--cert", "c", "--key", "k", "--policies"],
        ["webhook", "--cert"],
        ["certs", "issue", "--out"],
        ["policy", "check"],
        ["policy", "import"],
        ["preview", "pod.yaml"],
        ["top", "--kubeconfig"],
        ["plugin", "--cdi-dir"],
    ],
)
def test_an_empty_path_is_bad_usage_and_not_the_working_directory(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, [*arguments, ""])
    assert ran.exit_code == 2
    assert 'expected a path, got "". See' in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_every_path_of_an_option_is_of_the_type_that_takes_no_empty_one() -> None:
    paths = [option.type for _, option in options() if isinstance(option.type, click.Path)]
    assert len(paths) > 20
    assert all(isinstance(one, Place) for one in paths)


def test_a_missing_file_is_named_in_one_line() -> None:
    ran = CliRunner().invoke(main, ["preview", "/no/such/file.yaml"])
    assert ran.exit_code == 2
    assert (
        ran.stderr
        == "gpu-share: /no/such/file.yaml: cannot be read (No such file or directory): name a file with pods\n"
    )


def test_a_directory_that_vanishes_while_it_is_checked_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = store.load

    def load_and_vanish(directory: Path) -> object:
        loaded = load(directory)
        directory.rmdir()
        return loaded

    monkeypatch.setattr(store, "load", load_and_vanish)
    ran = CliRunner().invoke(main, ["policy", "check", str(tmp_path)])
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"gpu-share: {tmp_path}: cannot be read (No such file or directory): ")


TOO_LONG = "/tmp/" + 300 * "a"  # for a name, so that nobody can look at it; root can at what others may not see


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["policy", "check", TOO_LONG], 2),
        (["policy", "show", "team", "--policies", TOO_LONG], 2),
        (["policy", "import", "-", "--into", TOO_LONG], 2),
        (["preview", "-", "--policies", TOO_LONG], 2),
        (["certs", "issue", "--out", TOO_LONG], 1),
        (["plugin", "--simulate", TOO_LONG], 2),
        (["plugin", "--simulate", "1xH200", "--kubelet-dir", TOO_LONG], 1),
        (["plugin", "--simulate", "1xH200", "--allocation", "dra", "--service-account", TOO_LONG], 1),
    ],
    ids=lambda one: " ".join(one).replace(TOO_LONG, "...") if isinstance(one, list) else "",
)
def test_a_path_that_cannot_be_looked_at_is_named_in_one_line(arguments: list[str], code: int, tmp_path: Path) -> None:
    directories = dict.fromkeys(("GPU_SHARE_STATE_DIR", "GPU_SHARE_KUBELET_DIR"), str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-m", "gpu_share", *arguments],
        cwd=ROOT,
        env=os.environ | directories | {"KUBERNETES_SERVICE_HOST": "127.0.0.1"},
        input="version: v1\n",
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in ran.stderr.splitlines() if not line.startswith("{")]  # which is the log's
    assert (ran.returncode, [TOO_LONG in line for line in said]) == (code, [True])
    assert "traceback" not in ran.stderr.lower()


def test_preview_loads_neither_server_nor_client() -> None:
    example = ROOT / "policies" / "examples" / "1-tensorflow-serving.yaml"
    program = (
        "import sys; from gpu_share import main\n"
        f"try: main(['preview', {str(example)!r}])\n"
        "except SystemExit: pass\n"
        "heavy = {'flask', 'gunicorn', 'httptools', 'grpc', 'rich', 'kubernetes', 'cryptography', 'pynvml'}\n"
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
