"""The options of the parts on a node, as they are read from words and from the environment."""

from pathlib import Path
from typing import Any

import click
import pytest

from gpu_share import main
from tests.command_line import command as named

USUAL_XIDS = {13, 31, 43, 45, 68, 109}


def read(command: str, *words: str) -> dict[str, Any]:
    return named(command).make_context(command, list(words)).params


def test_without_a_word_programs_faults_leave_a_gpu_healthy() -> None:
    assert read("plugin")["application_xids"] == USUAL_XIDS


@pytest.mark.parametrize(("text", "xids"), [("79", {79}), ("31, 43", {31, 43}), ("none", set()), ("", USUAL_XIDS)])
def test_xids_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, xids: set[int]) -> None:
    # A variable that is empty is one that is not set.
    monkeypatch.setenv("GPU_SHARE_APPLICATION_XIDS", text)
    assert read("plugin")["application_xids"] == xids


@pytest.mark.parametrize("words", [("--application-xids", "none,13"), ("--application-xids", "-1")])
def test_a_word_that_is_none_of_them_is_named(words: tuple[str, str]) -> None:
    with pytest.raises(click.BadParameter, match=f"'{words[1]}': expected .*, separated by commas"):
        read("plugin", *words)


@pytest.mark.parametrize("text", ["0", "65536", "100000000000000000000013"])
def test_a_number_that_no_xid_has_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected XID numbers"):
        read("plugin", "--application-xids", text)


def test_options_before_a_command_are_rejected_and_not_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plugin", "--state-dir", str(tmp_path), "status"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "gpu-share: put the options after the command: gpu-share plugin status ...\n"


def test_a_variable_of_the_plugin_does_not_break_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPU_SHARE_APPLICATION_XIDS", "nonsense")
    with pytest.raises(SystemExit):
        main(["plugin", "status", "--state-dir", str(tmp_path)])
    assert "no plugin runs here" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["polic"], ["plugin", "--no-such"], ["policy", "chek"]])
def test_an_error_of_usage_says_where_to_look(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert " --help\n" in capsys.readouterr().err
