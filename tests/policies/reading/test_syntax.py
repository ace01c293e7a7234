"""What a parser of YAML rejects is said in words and with what to do, whichever parser it was."""

from typing import Any

import pytest
import yaml

from policies.reading.document import read
from policies.reading.syntax import syntax_fault

CASES = [
    ("share:\n\tmaximum: '1'\n", 2, "a tab in the indentation: indent with spaces"),
    ("share:\n  maximum: '1'\n\trounding: up\n", 3, "a tab in the indentation: indent with spaces"),
    ("share:\n  \tmaximum: '1'\n", 2, "a tab in the indentation: indent with spaces"),
    ("nodes:\n- {model: *T4*, offer: none}\n", 2, 'a value that begins with * is an alias: put it in quotes, "*T4*"'),
    ("nodes:\n- model: *T4*\n  offer: none\n", 2, 'a value that begins with * is an alias: put it in quotes, "*T4*"'),
    ("nodes: [{node: *, offer: none}]", 1, 'put it in quotes, "*"'),
    ("a: @x", 1, "a value cannot begin with @: put it in quotes"),
    ("a: b: c", 1, "check the indentation, or put the value in quotes"),
    ("share:\n minimum: '1'\n  maximum: '1'", 3, "check the indentation"),
    ("a: 1\nb: 'x\nc: 2\n", 2, "a quote is not closed: close it"),
    ("a: 1\nb: [1, 2\nc: 3\n", 2, "a bracket or brace is not closed, or a comma is missing behind an item: add it"),
    ("a: 1\nb: {c: d\n", 2, "a bracket or brace is not closed, or a comma is missing behind an item: add it"),
    ("a: 1\nb: \x00", 2, "characters are not allowed: remove them"),
    ("- a\nb: 1", 2, "this does not fit the lines above it: check the indentation"),
    ('a: "\\q"', 1, ": correct it"),
]


@pytest.mark.parametrize("parser", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
@pytest.mark.parametrize(("text", "line", "words"), CASES)
def test_a_fault_of_syntax_says_its_line_and_what_to_do(text: str, line: int, words: str, parser: Any) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        list(yaml.parse(text, Loader=parser))
    found, message = syntax_fault(caught.value, text)
    assert (found, message.startswith("invalid YAML: ")) == (line, True)
    assert message.endswith(words)


def test_an_alias_in_a_policy_file_is_told_to_be_put_in_quotes() -> None:
    with pytest.raises(Exception, match=r'line 2: .*an alias, which is not allowed: put it in quotes, "\*T4"$'):
        read("nodes:\n- model: *T4\n  offer: none\n")
