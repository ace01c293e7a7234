import json
import random
import time
from typing import Any

import pytest

from tests.policies.pods import container, pod, policies
from tests.webhook.reviews import answer, call, patch_of
from webhook.review import BadCall, review

REQUEST = json.dumps(call(pod("0.2"))).encode()
SECRETS = [{"name": "PASSWORD", "value": "s3cret-value"}]


def allowed(body: object) -> bool | None:
    """The answer, or None if the call is a bad one."""
    try:
        return bool(answer(body)["allowed"])
    except BadCall as error:
        said = str(error)
    assert said.isprintable()
    return None


def bad(body: object) -> str:
    with pytest.raises(BadCall) as caught:
        review(body if isinstance(body, bytes) else json.dumps(body).encode(), policies())
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.isprintable()
    assert len(sentence) <= 256
    return sentence


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty body"),
        (b"{", "truncated"),
        (b"hello", "malformed"),
        (b"\x00", "malformed"),
        (b"\xef\xbb\xbf{}", "malformed"),
        (REQUEST + b"x", "malformed"),
        (REQUEST[:-1], ""),
        (REQUEST.decode().encode("utf-16"), "malformed"),
        (REQUEST.replace(b'"example"', b"NaN"), "malformed"),
        (REQUEST.replace(b'"example"', b"Infinity"), "malformed"),
        (REQUEST.replace(b'"example"', b"'example'"), "malformed"),
        (REQUEST.replace(b'"example"', b'"\xff"'), ""),
        (REQUEST.replace(b'"0.2"', b'"\xc3\x28"'), ""),
        (REQUEST.replace(b'"705ab4f5"', b'"\xed\xa0\x80"'), ""),
        (REQUEST.replace(b'"example"', b'"\\ud800"'), "malformed"),
        (REQUEST.replace(b'"example"', b'"a\nb"'), "malformed"),
        ([], "got array"),
        (None, "got null"),
        ({}, "missing required field"),
        ({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}, "request"),
        (call(pod()) | {"apiVersion": "admission.k8s.io/v1beta1"}, "got 'AdmissionReview admission.k8s.io/v1beta1'"),
        (call(pod()) | {"apiVersion": "x" * 10_000}, "got 'AdmissionReview xxx"),
        (call(pod()) | {"kind": "Pod"}, "got 'Pod "),
        (call(pod()) | {"request": None}, "got null"),
        (call(pod(), uid=""), "uid"),
        (call(pod(), uid=7), "$.request.uid"),
        (call(pod(), kind={"kind": "Deployment", "group": "apps"}), "'apps/Deployment'"),
        (call(pod(), kind={"kind": "Pod", "group": "example.com"}), "example.com"),
        (call(pod(), kind={"kind": "x\ny" * 10_000}), "narrow the webhook's rules"),
        (call(pod(), kind="Pod"), "$.request.kind"),
        (call(pod(), namespace=None), "$.request.namespace"),
        (call(None), "got null"),
        (call([]), "got array"),
        (call({}), "spec"),
        (call({"spec": None}), ".spec"),
        (call({"spec": {"containers": {}}}), ".spec.containers"),
        (call({"spec": {"containers": [None]}}), ".spec.containers[0]"),
        (call({"spec": {"containers": [{}]}}), "name"),
        (call(pod("0.2", container(env={}))), "env"),
        (call(pod("0.2", container(env=[{"name": 1}]))), "env[0].name"),
        (call(pod("0.2", container(env=[{"name": "A", "value": 1}]))), "env[0].value"),
        (call(pod("0.2", container(args="x"))), "args"),
        (call(pod("0.2", container(resources={"limits": {"a": True}}))), "limits"),
        (call(pod("0.2", hostIPC="yes")), "hostIPC"),
        (call({**pod(), "metadata": {"annotations": {"gpu-share": 0.2}}}), "annotations"),
    ],
)
def test_a_bad_call_is_one_sentence(body: object, words: str) -> None:
    assert words in bad(body)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'[{"a":['])
@pytest.mark.parametrize("place", [b'"example"', b'"0.2"', b'"CREATE"', b'"CreateOptions"'])
def test_nesting_by_the_thousand_is_a_bad_call_wherever_it_stands(opening: bytes, place: bytes) -> None:
    assert "500 levels" in bad(REQUEST.replace(place, opening * 100_000))
    bad(opening * 200_000)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "{" * 5000,
        '[\\"' * 5000,
        "\\\\[" * 5000,
        '\\\\\\"[' * 5000,
        "[]" * 5000,
        '\\"' + "{" * 5000,
        "\\u0022[",
    ],
)
def test_brackets_in_a_text_are_no_nesting(text: str) -> None:
    body = REQUEST.replace(b'"example"', b'"' + text.encode() + b'"')
    assert json.loads(body)
    assert answer(body)["allowed"] is True


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    on = pod("0.2", *(container(f"c{number}", env=[{"name": "A", "value": "[{"}]) for number in range(400)))
    assert len(patch_of(answer(call(on)))) > 400


@pytest.mark.parametrize("unit", [b'\\"', b'\\"x', b"\\\\", b'\\"['])
def test_a_text_that_does_not_end_is_looked_at_once(unit: bytes) -> None:
    began = time.process_time()
    bad(b'{"apiVersion": "' + unit * 30_000)
    assert time.process_time() - began < 1


def test_nesting_below_the_limit_is_ignored() -> None:
    assert answer(REQUEST.replace(b'"CreateOptions"', b"[" * 450 + b"]" * 450))["allowed"] is True


@pytest.mark.parametrize("number", [b"1e400", b"1" + b"0" * 400, b"-1e-400", b"18446744073709551616", b"1.5"])
def test_huge_numbers_harm_nothing(number: bytes) -> None:
    body = json.dumps(call(pod("0.2", container(resources={"limits": {"cpu": "N"}})))).encode()
    assert allowed(body.replace(b'"N"', number)) in (True, None)


def test_the_last_of_two_equal_keys_counts() -> None:
    assert answer(REQUEST.replace(b'"gpu-share": "0.2"', b'"gpu-share": "x", "gpu-share": "0.2"'))["allowed"] is True


def test_damaged_reviews_are_answered_or_are_bad_calls() -> None:
    chance = random.Random(3)  # noqa: S311 - a repeatable test
    full = pod("0.2", container(image="nvidia/jax", env=SECRETS, args=["--a"], volumeMounts=[]), volumes=[])
    original = json.dumps(call(full)).encode()
    pieces = [
        b"null",
        b"[]",
        b"{}",
        b'""',
        b"1e999",
        b"-1",
        b"true",
        b'"',
        b"[[",
        b"}",
        b"\\",
        b"\xff",
        b"\x00",
        b",",
        b"",
    ]
    outcomes = set()
    for _ in range(4000):
        body = original
        for _ in range(chance.randint(1, 3)):
            start = chance.randrange(len(body))
            body = body[:start] + chance.choice(pieces) + body[start + chance.choice([0, 1, 2, 8, 30]) :]
        outcomes.add(allowed(body))
    assert outcomes == {True, False, None}


def test_every_value_replaced_by_every_type_is_answered_or_is_a_bad_call() -> None:
    full = call(pod("0.2", container(env=SECRETS, resources={"limits": {"cpu": 1}}), initContainers=[container("i")]))
    for place in _places(full):
        values: tuple[Any, ...] = (None, True, 0, -1.5, "", "x", [], {}, [None], {"": None}, [[]], {"a": {"a": []}})
        for value in values:
            allowed(_replaced(full, place, value))


def _places(value: object) -> list[list[Any]]:
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return [[], *([key, *rest] for key, one in inner for rest in _places(one))]
    return [[]]


def _replaced(value: Any, place: list[Any], by: object) -> Any:
    if not place:
        return by
    copy = value.copy()
    copy[place[0]] = _replaced(value[place[0]], place[1:], by)
    return copy
