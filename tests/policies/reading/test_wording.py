"""What is wrong with a value is said in the words of the file's author, whatever the value is."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import inspect

from policies.cluster import Cluster
from policies.errors import Problem
from policies.policy import Policy
from policies.reading.layers import read_layer
from tests.policies.reading.fields import leaves_of, placed

FIELDS = [("team.yaml", field) for field in leaves_of(Policy)] + [
    ("_cluster.yaml", field) for field in leaves_of(Cluster)
]
WORDS_OF_A_PARSER = r"Expected|\b(object|array|str|int|float|bool|null|None|length|regex)\b|`"
# Neither holds a word of a parser, so that such a word in a message is the parser's own.
NAMES = st.text("xyz .-/*", max_size=4) | st.sampled_from(["mps", "whole", "x" * 400])
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


def problems_of(file: str, content: object) -> list[Problem]:
    problems: list[Problem] = []
    read_layer(file, json.dumps(content), problems)
    return problems


@given(place=st.sampled_from(FIELDS), value=VALUES)
@example(place=("_cluster.yaml", "partitions"), value={"": [None]})
def test_no_wrong_value_is_told_in_a_parsers_terms(place: tuple[str, str], value: Any) -> None:
    file, field = place
    for problem in problems_of(file, placed(field, value)):
        assert not re.search(WORDS_OF_A_PARSER, problem.message)
        assert re.search(r"^expected .+, got .+: |^invalid share .+: |^unknown field: |: [a-z]", problem.message)
        assert problem.line == 1
        assert str(problem).isprintable()


@pytest.mark.parametrize(("file", "field"), FIELDS)
def test_every_field_names_itself_and_says_what_to_do(file: str, field: str) -> None:
    """A list in a list of lists, a mapping of mappings and a number out of every bound fit nowhere."""
    wrong = [[[[]]], {"x": {"x": {}}}, -1.5] if field != "placement.nodeSelector" else [[[]], {"x": {}}, -1.5]
    for value in wrong:
        problems = [
            one for one in problems_of(file, placed(field, value)) if one.field.startswith(field.replace("[]", "[0]"))
        ]
        assert problems, (field, value)
        assert all(re.search(r"^expected .+, got .+: [a-z]|^unknown field: ", one.message) for one in problems)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "_cluster.yaml",
            "vgpusPerGpu: 500",
            "vgpusPerGpu: expected a whole number from 1 to 100, got 500: write it like 10",
        ),
        (
            "_cluster.yaml",
            "nodes: [{offer: whole, indexes: [-1]}]",
            "nodes[0].indexes[0]: expected a whole number from 0 to 1",
        ),
        ("team.yaml", "share: 5", "share: expected a mapping, got 5: write fields such as minimum"),
        ("team.yaml", "enabled: off", 'enabled: expected true or false, got "off": write false'),
        ("team.yaml", "mode: warning", 'mode: expected enforce or warn, got "warning": did you mean warn?'),
        ("team.yaml", "strategy: 5", "strategy: expected mps, time-slicing or partition, got 5: write one of them"),
        ("team.yaml", "placement: {runtimeClassName: []}", 'got an empty list: write it like "nvidia"'),
        (
            "team.yaml",
            f"placement: {{nodeSelector: {{{', '.join(f'a{number}: b' for number in range(65))}}}}}",
            "expected a mapping with at most 64 items, got a mapping: take out 1 of its 65 items",
        ),
        (
            "team.yaml",
            "placement: {tolerations: [{key: a, effect: 5}]}",
            "NoSchedule, PreferNoSchedule or NoExecute, got 5",
        ),
    ],
)
def test_a_wrong_value_is_told_what_was_expected(file: str, text: str, words: str) -> None:
    problems: list[Problem] = []
    read_layer(file, text, problems)
    assert words in str(problems[0])


def constrained(of: inspect.Type, path: str = "") -> list[str]:
    """Where the models demand a pattern and say no form."""
    match of:
        case inspect.Metadata(type=inner, extra=extra):
            return [] if extra and "form" in extra else constrained(inner, path)
        case inspect.UnionType(types=types):
            return [place for one in types for place in constrained(one, path)]
        case inspect.StructType(fields=fields):
            return [place for one in fields for place in constrained(one.type, f"{path}.{one.encode_name}")]
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return constrained(item, f"{path}[]")
        case inspect.DictType(key_type=key, value_type=value):
            return constrained(key, f"{path}.<key>") + constrained(value, f"{path}.<value>")
        case inspect.StrType(pattern=pattern):
            return [path] if pattern else []
        case _:
            return []


@pytest.mark.parametrize("model", [Policy, Cluster])
def test_every_pattern_has_a_form_in_words(model: Any) -> None:
    assert constrained(inspect.type_info(model)) == []
