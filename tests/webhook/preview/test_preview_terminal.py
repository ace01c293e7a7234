"""What people read in a terminal fits into it; what programs read is left as it is."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from program.terminal import wrapped
from tests.in_terminal import in_terminal

EXAMPLE = "policies/examples/1-tensorflow-serving.yaml"


def previewed(columns: int, *options: str) -> list[str]:
    return in_terminal(columns, "preview", EXAMPLE, *options)


def piped() -> str:
    command = [sys.executable, "-m", "gpu_share", "preview", EXAMPLE]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("columns", [80, 100])
def test_an_explanation_fits_into_the_terminal_and_goes_on_indented(columns: int) -> None:
    lines = previewed(columns)
    assert max(len(line) for line in lines) <= columns
    assert '  Container "server" asks for 0.2 of a GPU' in lines[3]
    assert lines[4].startswith("    ")
    assert not any("\x1b" in line for line in lines)
    assert " ".join(" ".join(lines).split()).replace(", ", ",") == " ".join(piped().split()).replace(", ", ",")


def test_what_is_piped_has_one_line_for_one_sentence() -> None:
    assert max(len(line) for line in piped().splitlines()) > 160


def test_documents_are_never_wrapped() -> None:
    assert any(len(line) > 60 for line in previewed(60, "-o", "yaml"))


@given(st.text('ab ,"{}', max_size=60).filter(lambda text: text.strip()), st.integers(1, 40))
def test_nothing_is_lost_and_no_word_is_broken(text: str, width: int) -> None:
    lines = [*wrapped(text, width)]
    assert "".join("".join(lines).split()) == "".join(text.split())
    words = set(text.replace(',"', ', "').replace(",{", ", {").split())
    assert all(word in words for line in lines for word in line.replace(',"', ', "').replace(",{", ", {").split())
    for line in lines:
        assert len(line) <= width or len(line.replace(',"', ', "').replace(",{", ", {").split()) == 1


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("  one two three", ["  one two", "    three"]),
        ("    extraordinarily", ["    extraordinarily"]),
        ('a = {"b":1,"c":{"d":2},{}}', ["a =", '  {"b":1,', '  "c":{"d":2},', "  {}}"]),
        ("", [""]),
    ],
)
def test_a_line_goes_on_below_its_beginning(line: str, lines: list[str]) -> None:
    assert [*wrapped(line, 10)] == lines
