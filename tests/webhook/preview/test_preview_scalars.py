"""Which scalars are strings to kubectl: of what is read, and of what is written for it."""

import json

import pytest
import yaml

from tests.webhook.commands import POD, preview
from webhook.preview.objects import read_objects

# What kubectl 1.32 reads as a number or a boolean where it has no quotes, beside what YAML 1.1 does.
NO_STRINGS = ["1e-4", "08", "09", "0o17", "1234e56", "-.5", ".5", "1.", "1_000", "0_1", "1_", "0b1", "-0b11", "0X1F"]
NO_STRINGS += ["y", "Y", "n", "N", "on", ".inf", "-.INF", ".NaN", "~", "<<", "0755"]


@pytest.mark.parametrize("options", [("-o", "yaml"), ("-o", "translated", "--from", "hami")])
def test_strings_that_kubectl_would_take_for_something_else_are_in_quotes(options: tuple[str, ...]) -> None:
    other = {"kind": "ConfigMap", "data": {text: text for text in NO_STRINGS}}
    pod = yaml.safe_load(POD)
    pod["spec"]["containers"][0]["args"] = NO_STRINGS
    pod["metadata"]["labels"] = {"commit": "1234e56"}
    result = preview("\n---\n".join(map(json.dumps, (other, pod))), *options).stdout
    for text in NO_STRINGS:
        assert f"- '{text}'\n" in result
        assert f"'{text}': '{text}'\n" in result
    assert "commit: '1234e56'\n" in result
    again = [one for one, _ in read_objects(result, "file")]
    assert (again[0]["data"], again[1]["spec"]["containers"][0]["args"][: len(NO_STRINGS)]) == (
        other["data"],
        NO_STRINGS,
    )


@pytest.mark.parametrize("text", [text for text in NO_STRINGS if text not in ("~", "<<")])
def test_what_kubectl_takes_for_no_string_is_told_of(text: str) -> None:
    result = preview(POD + f"    args: [--a, {text}]\n", code=2)
    assert "expected a string" in result.stderr or "expected a number that is finite" in result.stderr


@pytest.mark.parametrize(
    "text", ["_1", "1e", "7e12345", "0x", "0b", "nan", "yEs", "1-1", "2026-11-20", "12:30:45", ".", "+"]
)
def test_what_it_takes_for_a_string_is_one(text: str) -> None:
    assert "granted" in preview(POD + f"    args: [--a, {text}]\n").stdout


def test_scalars_are_what_the_api_machinery_takes_them_for() -> None:
    text = POD + "  scalars: {date: 2026-11-20, time: 12:30:45, octal: 012, hex: 0x1F, yes: yes, number: 1e3}\n"
    made = yaml.safe_load(preview(text, "-o", "yaml").stdout)["spec"]["scalars"]
    assert made == {"date": "2026-11-20", "time": "12:30:45", "octal": 10, "hex": 31, "true": True, "number": 1000.0}


def test_keys_are_what_the_api_machinery_takes_them_for() -> None:
    text = POD + "  keys: {on: a, 1: b, 010: c, 1.50: d, ~x: e, 1e5: f, 12e6: g, .00001: h, 0.0: i}\n"
    made = yaml.safe_load(preview(text, "-o", "yaml").stdout)["spec"]["keys"]
    assert made == dict(
        zip(["true", "1", "8", "1.5", "~x", "100000", "1.2e+07", "1e-05", "0"], "abcdefghi", strict=True)
    )
