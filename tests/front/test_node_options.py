"""The options of the parts on a node, as they are read from words and from the environment."""

from typing import Any

import click
import pytest

from gpu_share import main
from tests.command_line import command as named

USUAL_XIDS = {13, 31, 43, 45, 68, 109}


def read(command: str, *words: str) -> dict[str, Any]:
    return named(command).make_context(command, list(words)).params


def test_without_a_word_a_gpu_goes_by_variable_and_programs_faults_leave_it_healthy() -> None:
    options = read("plugin")
    assert (options["device_handover"], options["application_xids"]) == ({"envvar"}, USUAL_XIDS)


@pytest.mark.parametrize(
    ("text", "ways"), [("cdi", {"cdi"}), ("cdi,devices", {"cdi", "devices"}), (" envvar , cdi ", {"envvar", "cdi"})]
)
def test_ways_are_joined_by_commas(text: str, ways: set[str]) -> None:
    assert read("plugin", "--device-handover", text)["device_handover"] == ways


@pytest.mark.parametrize(("text", "xids"), [("79", {79}), ("31, 43", {31, 43}), ("none", set()), ("", USUAL_XIDS)])
def test_xids_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, xids: set[int]) -> None:
    # A variable that is empty is one that is not set.
    monkeypatch.setenv("GPU_SHARE_APPLICATION_XIDS", text)
    assert read("plugin")["application_xids"] == xids


@pytest.mark.parametrize(
    "words", [("--application-xids", "none,13"), ("--application-xids", "-1"), ("--device-handover", "env")]
)
def test_a_word_that_is_none_of_them_is_named(words: tuple[str, str]) -> None:
    with pytest.raises(click.BadParameter, match=f"'{words[1]}': expected .*, separated by commas"):
        read("plugin", *words)


@pytest.mark.parametrize("text", ["none", ","])
def test_a_gpu_goes_in_some_way(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plugin", "--device-handover", text])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "gpu-share: --device-handover: expected some of envvar, cdi, devices\n"
