"""What people read in a terminal fits into it; what programs read is left as it is."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from program.terminal import wrapped
from tests.in_terminal import in_terminal
from tests.webhook.commands import POD, run

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


HOSTILE = '"x\\u009b2J\\u0007\\n\\u202e"'  # as YAML and JSON write it
SPEC = "spec: {containers: [{name: HOSTILE, image: a}, {name: b, image: a}]}"
OWN = "apiVersion: x.io/v1\nkind: Own\nmetadata: {name: own, annotations: {gpu-share: '0.2'}}\n"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (POD.replace("name: web", "namespace: HOSTILE"), ()),
        (POD.replace("name: web", "name: HOSTILE"), ()),
        (POD.replace('gpu-share: "0.2"', "HOSTILE: 5"), ()),
        (POD.replace('"0.2"', "[HOSTILE]"), ()),
        (POD.replace('"0.2"', "HOSTILE"), ()),
        (POD.replace("main", "HOSTILE"), ()),
        (POD.replace("spec:", "spec:\n  initContainers: [{name: HOSTILE, image: a}]"), ()),
        (f"kind: Pod\nmetadata: {{annotations: {{'container.gpu-share.dev/b': '0.2'}}}}\n{SPEC}", ()),
        (POD.replace("gpu-share:", '"container.gpu-share.dev/HOSTILE":').replace("main", "HOSTILE"), ()),
        (POD.replace("gpu-share:", '"Container.gpu-share.dev/HOSTILE":'), ()),
        (POD.replace("spec:", "status: {HOSTILE: {annotations: {gpu-share: '0.2'}}}\nspec:"), ()),
        (f"{OWN}spec: {{HOSTILE: {{{SPEC}}}}}", ()),
        (f"{OWN.replace('Own', 'HOSTILE')}{SPEC}", ("--pod-path", "spec")),
    ],
    ids=[
        "namespace",
        "name",
        "key without a text",
        "share without quotes",
        "share",
        "container",
        "init container",
        "container without a share",
        "container with an annotation",
        "near miss",
        "misplaced",
        "place of pods",
        "kind",
    ],
)
@pytest.mark.parametrize("output", ["explain", "diff"])
def test_no_text_of_a_file_moves_the_cursor_or_turns_the_direction_of_writing(
    text: str, options: tuple[str, ...], output: str
) -> None:
    inner = HOSTILE[1:-1]
    written = text.replace('/HOSTILE"', f'/{inner}"').replace("HOSTILE", HOSTILE)
    shown = run("preview", "-", "-o", output, *options, given=written, code=None)
    told = shown.stdout if output == "explain" else shown.stdout.partition("@@")[0]
    lines = [*told.split("\n"), *shown.stderr.split("\n")]
    assert output == "diff" or r"\x9b2J" in "".join(lines)
    assert [line for line in lines if not line.isprintable()] == []


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
