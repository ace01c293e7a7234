"""A field of the wrong type is named with its line, in words, whatever stands there."""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.pod import Pod
from tests.webhook.commands import preview, unreadable
from webhook.preview.fields import fault_of

HEAD = "kind: Pod\nspec:\n  containers:\n  - name: x\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "    args: v", '5: C.args: expected a list, got "v": begin each of its items with a dash'),
        (HEAD + "    env: [{name: A, value: 5}]", "5: C.env[0].value: expected a string, got 5: put it in"),
        (HEAD + "    env: [{name: A, value: yes}]", "5: C.env[0].value: expected a string, got true: put"),
        (HEAD + "    resources:\n      limits:\n        a: '1'\n        b: [1]", "8: C.resources.limits.b: exp"),
        (HEAD + "    command:\n    - sh\n    - 1", "7: C.command[1]: expected a string, got 1: put it in quotes"),
        (HEAD + "    image: {a: b}", "5: C.image: expected a string, got a mapping: write one"),
        (HEAD + "    envFrom: [a]", '5: C.envFrom[0]: expected a mapping, got "a": write its fields below it'),
        (HEAD + "  hostIPC: 'yes'", '5: spec.hostIPC: expected true or false, got "yes": write one of the two'),
        (
            HEAD + "  nodeSelector: {a: b, c.d: 1}",
            "5: spec.nodeSelector.c.d: expected a string, got 1: put it in quotes",
        ),
        (HEAD + "  - name:", "5: spec.containers[1].name: expected a string, got nothing: give it a value"),
        (HEAD + "  - image: v", "5: spec.containers[1]: name is missing: add it"),
        ("kind: Pod\nspec: []", "2: spec: expected a mapping, got an empty list: write its fields below it"),
    ],
)
def test_a_field_of_the_wrong_type_is_said_with_line_value_and_fix(text: str, words: str) -> None:
    assert unreadable(text).startswith(f"gpu-share: standard input:{words.replace('C.', 'spec.containers[0].')}")


def fields(of: msgspec.inspect.Type, path: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Every place in a pod, down to each field of each item."""
    match of:
        case msgspec.inspect.UnionType(types=types):
            return [place for one in types for place in fields(one, path)]
        case msgspec.inspect.StructType(fields=inner):
            return [path, *(place for one in inner for place in fields(one.type, (*path, one.encode_name)))]
        case msgspec.inspect.ListType(item_type=item):
            return [path, *fields(item, (*path, 0))]
        case msgspec.inspect.DictType():
            return [path, (*path, "key")]
        case _:
            return [path]


PLACES = [place for place in fields(msgspec.inspect.type_info(Pod), ()) if place]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("xyz .-/*", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xyz", max_size=2), inner, max_size=2),
    max_leaves=4,
)


def pod_with(place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A good pod but for *value* at *place*."""
    made: Any = value
    for step in reversed(place):
        if step == 0:
            made = [made]
        elif len(place) == 1 or step not in ("spec", "metadata"):
            made = {"name": "x", "mountPath": "/x", "path": "/x", step: made}
        else:
            made = {step: made}
    pod: dict[str, Any] = {"spec": {}} | made
    return pod


@given(place=st.sampled_from(PLACES), value=VALUES)
def test_no_wrong_value_in_a_pod_is_told_in_a_parsers_terms(place: tuple[Any, ...], value: Any) -> None:
    pod = pod_with(place, value)
    try:
        msgspec.convert(pod, Pod)
    except msgspec.ValidationError as error:
        where, message = fault_of(error, pod)
        assert re.fullmatch(r"expected .+, got .+: .+|\w+ is missing: add it", message)
        assert not re.search(r"Expected|\b(object|array|str|int|float|bool|null|None)\b|`", message)
        assert where or "spec" in message


def test_every_place_of_a_pod_is_looked_at() -> None:
    assert ("spec", "containers", 0, "env", 0, "value") in PLACES
    assert ("spec", "containers", 0, "resources", "limits", "key") in PLACES
    assert preview(json.dumps({"kind": "Pod"} | pod_with(("spec", "containers", 0, "image"), "x"))).exit_code == 0
