import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.reading.document import DEEPEST, LARGEST_BYTES, MOST_NODES, DocumentError, events, read

SHIPPED = sorted(Path("policies/files").glob("*.yaml"))


def fault_of(text: str) -> DocumentError | None:
    try:
        read(text)
    except DocumentError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("---\n", None),
        ("# nothing\n", None),
        ("a: no", {"a": "no"}),
        ("a: yes\nb: on\nc: off\nd: y", {"a": "yes", "b": "on", "c": "off", "d": "y"}),
        ("a: 010", {"a": "010"}),
        ("a: 0x10\nb: 0o17", {"a": "0x10", "b": "0o17"}),
        ("a: 12:30:45", {"a": "12:30:45"}),
        ("a: 2026-11-20", {"a": "2026-11-20"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: .inf\nb: .nan", {"a": ".inf", "b": ".nan"}),
        ("a: 10\nb: -3\nc: 0.2\nd: 1e2", {"a": 10, "b": -3, "c": 0.2, "d": 100.0}),
        ("a: true\nb: False\nc: TRUE\nd: tRue", {"a": True, "b": False, "c": True, "d": "tRue"}),
        ("a: null\nb: ~\nc:\nd: nULL", {"a": None, "b": None, "c": None, "d": "nULL"}),
        ('a: "0.2"\nb: "true"\nc: "null"\nd: \'10\'', {"a": "0.2", "b": "true", "c": "null", "d": "10"}),
        ("a: |\n  1\n", {"a": "1\n"}),
        ("a: ! 1", {"a": "1"}),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
        ("\ufeffa: 1", {"a": 1}),
        ('{"a": ["\u00fc", {}]}', {"a": ["\u00fc", {}]}),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: Any) -> None:
    assert read(text).value == value


def test_old_booleans_are_values_and_no_keys() -> None:
    text = "on: yes\ny: {no: [off, {N: Y}]}"
    assert read(text, old_booleans=True).value == {"on": True, "y": {"no": [False, {"N": True}]}}
    assert read("yes", old_booleans=True).value is True


def test_every_value_knows_its_line_and_that_of_its_key() -> None:
    root = read("a:\n  b: 1\n  c:\n  - x\n  - y: 2\n")
    assert (root.fields["a"].key_line, root.fields["a"].line) == (1, 2)
    inner = root.fields["a"].fields
    assert (inner["b"].line, inner["c"].key_line) == (2, 3)
    assert [item.line for item in inner["c"].items] == [4, 5]
    assert inner["c"].items[1].fields["y"].value == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: &x 1", 1, "anchors and tags"),
        ("a: &x 1\nb: *x", 1, "anchors and tags"),
        ("b: *x", 1, "alias"),
        ("a: {&x b: 1}", 1, "anchors and tags"),
        ("\na: !!str 1", 2, "anchors and tags"),
        ("a: !!python/object/apply:os.system [x]", 1, "anchors and tags"),
        ("!!map {a: 1}", 1, "anchors and tags"),
        ("a: 1\nb: 2\na: 3", 3, '"a" is here twice'),
        ("a: {b: 1,\n b: 2}", 2, '"b" is here twice'),
        ('a: 1\n"a": 2', 2, '"a" is here twice'),
        ("1: a", 1, "a key must be a string"),
        ("true: a", 1, "a key must be a string"),
        ("null: a", 1, "a key must be a string"),
        ("? [a]\n: b", 1, "a key must be a string"),
        ("? {a: b}\n: b", 1, "a key must be a string"),
        ("a: 1\n---\nb: 2", 2, "one document"),
        ("---\n---\n", 2, "one document"),
        ("a: [", 2, "invalid YAML"),
        ("a: b: c", 1, "invalid YAML"),
        ("a:\n\tb: 1", 2, "invalid YAML"),
        ("%FOO\n", 1, "begins with % is a directive: remove it, or indent it"),
        ("%YAML 1.2\n--- {}", 1, "a directive"),
        ("\ufeff%TAG !a! x\n--- {}", 1, "a directive"),
        ("a: 1\n...\n%TAG !a! x\n--- {}", 3, "a directive"),
        ("a: 1\r\n...\r\n%TAG !a! x\r\n--- {}", 3, "a directive"),
        ("a: 1\u2028...\x85%TAG !a! x\u2029--- {}", 1, "a directive"),
        ("a: 'x", 1, "invalid YAML"),
        ("a: \x00", 1, "invalid YAML"),
        ("a: \x07", 1, "invalid YAML"),
        ("a: @x", 1, "invalid YAML"),
        ("a: `x`", 1, "invalid YAML"),
    ],
)
def test_what_is_no_acceptable_document_is_denied_at_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(text)
    assert words in caught.value.message
    assert abs(caught.value.line - line) <= (1 if words == "invalid YAML" else 0)  # the two parsers differ by one
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 60_000,
        "{" * 60_000,
        "[" * 30_000 + "]" * 30_000,
        "a: " + "{a: " * 20_000,
        "- " * 30_000,
        "? " * 30_000,
        "\n".join(" " * depth + "a:" for depth in range(200)),
    ],
    ids=["lists", "mappings", "closed", "nested", "dashes", "keys", "indented"],
)
def test_brackets_by_the_thousand_are_denied_at_once(text: str) -> None:
    start = time.monotonic()
    with pytest.raises(DocumentError, match=f"more than {DEEPEST} levels|a key must be a string"):
        read(text)
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("directives", "value"),
    [
        ("".join(f"%TAG !{number}! x\n" for number in range(62_000)), " {}"),
        (f"%TAG !a! {'x' * 500_000}\n", "\n" + "- !a!b c\n" * 40_000),
    ],
    ids=["compared with each other", "copied into each tag"],
)
@pytest.mark.parametrize("may_say_version", [False, True])
def test_directives_of_tags_cost_nothing(directives: str, value: str, *, may_say_version: bool) -> None:
    start = time.monotonic()
    with pytest.raises(DocumentError, match="a directive"):
        list(events(f"{directives}---{value}", may_say_version=may_say_version))
    assert time.monotonic() - start < 1


def test_what_only_looks_like_a_directive_is_text() -> None:
    assert read("a: |\n  %TAG !a! x\nb: 5%").value == {"a": "%TAG !a! x\n", "b": "5%"}


def test_depth_ends_at_the_limit() -> None:
    assert read("[" * DEEPEST + "]" * DEEPEST).value is not None
    with pytest.raises(DocumentError, match="levels"):
        read("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))


def test_too_many_values_are_denied() -> None:
    with pytest.raises(DocumentError, match=f"more than {MOST_NODES} values"):
        read("[" + "a," * (MOST_NODES + 1) + "]")


def test_size_is_counted_in_bytes() -> None:
    assert read("# " + "\u00e9" * (LARGEST_BYTES // 2 - 1)).value is None
    with pytest.raises(DocumentError, match="larger than 1024 KiB"):
        read("# " + "\u00e9" * (LARGEST_BYTES // 2))


def test_a_long_number_costs_nothing() -> None:
    start = time.monotonic()
    assert not isinstance(read("a: " + "9" * 400_000).value["a"], int)
    assert time.monotonic() - start < 1


@given(st.text(max_size=200) | st.text("abc:,[]{}&*!|>'\"%@`?-# \n\t~<0.1", max_size=80))
@settings(deadline=None, max_examples=400)
def test_any_text_is_a_document_or_a_document_error(text: str) -> None:
    error = fault_of(text)
    if error is not None:
        assert error.line >= 1
        assert "\n" not in error.message


def test_damaged_policy_files_raise_nothing_but_document_errors() -> None:
    chance = random.Random(7)  # noqa: S311 - a repeatable test
    for file in SHIPPED:
        text = file.read_text()
        for _ in range(150):
            damaged = list(text)
            for _ in range(chance.randint(1, 6)):
                place = chance.randrange(len(damaged))
                damaged[place : place + chance.randint(0, 3)] = chance.choices("{}[]:&*!-?|>'\"\t\n \x00\u2028a0~", k=2)
            error = fault_of("".join(damaged))
            assert error is None or error.line >= 1
