"""What kubectl reads in a file, `preview` reads as kubectl does."""

import json
from typing import Any

import pytest
import yaml

from tests.webhook.commands import POD, preview, unreadable
from tests.webhook.preview.previewed import made, titles

SMALL = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "annotations": {"gpu-share": "0.2"}},
    "spec": {"containers": [{"name": "a", "image": "x"}]},
}
SECOND = {**SMALL, "metadata": {"name": "b"}}
BOTH = {"Pod default/a": "granted", "Pod default/b": "untouched"}


@pytest.mark.parametrize(
    ("merging", "fields"),
    [
        ("{w: 2, <<: *a}", {"x": 1, "w": 1}),
        ("{<<: *a, w: 2}", {"x": 1, "w": 2}),
        ("{<<: [*a, {x: 3, z: 3}]}", {"x": 1, "w": 1, "z": 3}),
        ("{<<: *a, <<: {x: 3}}", {"x": 3, "w": 1}),
    ],
)
def test_a_merge_replaces_what_stands_above_it(merging: str, fields: dict[str, int]) -> None:
    assert made(POD + f"  base: &a {{x: 1, w: 1}}\n  merged: {merging}\n")["spec"]["merged"] == fields


@pytest.mark.parametrize("between", ["\n", "", "\n\n  ", " ", "\r\n"])
def test_json_objects_can_follow_one_another(between: str) -> None:
    assert titles(between.join(map(json.dumps, (SMALL, SECOND)))) == BOTH
    assert titles(between.join(json.dumps(one, indent=2) for one in (SMALL, SECOND)) + "\n") == BOTH


def test_a_fault_in_a_second_json_object_is_said_with_its_line() -> None:
    second = {**SECOND, "spec": {"containers": 5}}
    assert unreadable(f"{json.dumps(SMALL)}\n{json.dumps(second)}").startswith("gpu-share: standard input:2: ")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_with_a_byte_order_mark_can_be_joined(newline: str) -> None:
    text = f"\ufeff{yaml.dump(SMALL)}---\n\ufeff{yaml.dump(SECOND)}"
    assert titles(text.replace("\n", newline)) == BOTH


def test_an_anchor_can_be_given_anew() -> None:
    text = POD + "  first: &a {x: 1}\n  second: *a\n  third: &a {x: 2}\n  fourth: *a\n"
    spec = made(text)["spec"]
    assert [spec[name]["x"] for name in ("first", "second", "third", "fourth")] == [1, 1, 2, 2]
    assert 'put it in quotes, "*b"' in unreadable(text + "  fifth: *b\n")
    assert made(POD + "  first: &a {x: 1}\n  second: &a {on: 0755}\n")["spec"]["second"] == {"true": 493}


def test_an_alias_to_an_anchor_of_another_document_is_told() -> None:
    text = f"{POD}  first: &a {{x: 1}}\n  second: &a {{x: 1}}\n---\n{POD}  third: *a\n"
    assert 'put it in quotes, "*a"' in unreadable(text)


def test_base64_is_text() -> None:
    text = POD + "  a: !!binary aG\n    k=\n  b: {!!binary Yg==: c}\n"
    spec = made(text)["spec"]
    assert (spec["a"], spec["b"]) == ("hi", {"b": "c"})


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"items": inner}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": inner}


@pytest.mark.parametrize("output", ["explain", "yaml", "diff"])
def test_a_deep_schema_beside_a_pod_is_read(output: str) -> None:
    deep = json.dumps(nested(90))
    inside = json.dumps({**SMALL, "spec": {**SMALL["spec"], "more": nested(90)}})  # type: ignore[dict-item]
    assert preview(f"{deep}\n---\n{inside}", "-o", output).stdout


def test_deeper_than_any_schema_is_told() -> None:
    assert "more than 100 levels" in unreadable(json.dumps(nested(100)))


def test_json_behind_a_byte_order_mark_is_json() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "x"}]}}
    one = {**pod, "metadata": {"name": "a", "annotations": {"says": "\U0001f600"}}}
    text = f"\ufeff{json.dumps(one)}\n{json.dumps({**pod, 'metadata': {'name': 'b'}})}"
    assert preview(text).stdout.count("Pod default/") == 2


def test_items_of_a_typed_list_have_its_kind() -> None:
    items = [{name: value for name, value in one.items() if name in ("metadata", "spec")} for one in (SMALL, SECOND)]
    typed = {"apiVersion": "v1", "kind": "PodList", "items": items}
    assert titles(json.dumps(typed)) == BOTH
    assert [one["kind"] for one in made(json.dumps(typed))["items"]] == ["Pod", "Pod"]
    assert "kind" in unreadable(json.dumps({**typed, "kind": "List"}))


@pytest.mark.parametrize(("written", "text"), [("! 0.2", "0.2"), ("! 0755", "0755"), ("! ~", "~")])
def test_the_tag_without_a_name_makes_a_string(written: str, text: str) -> None:
    args = made(POD + f"    args: [{written}, b]\n")["spec"]["containers"][0]["args"][:2]
    assert args == [text, "b"]


def test_a_share_can_have_the_tag_without_a_name() -> None:
    assert titles(POD.replace('"0.2"', "! 0.2")) == {"Pod default/web": "granted"}
