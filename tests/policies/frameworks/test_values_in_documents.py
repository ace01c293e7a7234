"""A setting in JSON, YAML or a list, in a word or a variable, ends where the next sign of it stands."""

import json
from typing import Any

import pytest

from policies.grant import Decision, Denied, Grant
from tests.policies.pods import container, decided, environment, mutated, only_container, pod, policies

WARNED = policies("{strategy: time-slicing, frameworks: {unread: warn}}")
BOTH = pytest.mark.parametrize("by", [policies(), policies("strategy: time-slicing")], ids=["mps", "time-slicing"])
JAX = "XLA_PYTHON_CLIENT_MEM_FRACTION"


WITHIN: list[dict[str, Any]] = [
    {"env": [{"name": "X", "value": '["--gpu-memory-utilization","0.15","--port","8000"]'}]},
    {"env": [{"name": "X", "value": '["--gpu-memory-utilization=0.15","--port=8000"]'}]},
    {"env": [{"name": "X", "value": "--gpu-memory-utilization=0.15,--port=8000"}]},
    {"env": [{"name": "X", "value": f'{{"env":{{"{JAX}":"0.15","A":"b"}}}}'}]},
    {"env": [{"name": "X", "value": f'[{{"name":"{JAX}","value":"0.15"}}]'}]},
    {"env": [{"name": "X", "value": f'env:\n- name: {JAX}\n  value: "0.15"\n'}]},
    {"env": [{"name": "X", "value": f"For JAX set {JAX}=0.15."}]},
    {"env": [{"name": "X", "value": f"Did you set {JAX}=0.15?\n{JAX}: 0.15!"}]},
    {"command": ["ray", "job", "submit", "--runtime-env-json", f'{{"env_vars":{{"{JAX}":"0.15","B":"1"}}}}']},
]


@BOTH
@pytest.mark.parametrize("on", WITHIN, ids=str)
def test_a_setting_within_the_share_is_granted_however_launchers_are_told(on: dict[str, Any], by: Any) -> None:
    assert isinstance(decided(pod("0.2", container(**on)), by), Grant)


V = "--gpu-memory-utilization"
ABOVE = [
    f'args:\n- {V}\n- "0.95"\n',
    f"<arg>{V}</arg><arg>0.95</arg>",
    f"{V}: 0.95\n",
    f'run {{"{V}": "0.95"}}',
    f'{{"{V}": "0.95",}}',
    f'[{{"key":"{JAX}","value":"0.95"}}]',
    f'{{"flag":"{V}","value":"0.95"}}',
    f'{{"{V}":["0.95"]}}',
    f'["{V}",["0.95"]]',
    f"{V} 0,95",
    f"{V} ,0.95",
    f'{{"flag":"{V}","value":"0.1e1"}}',
    f'{{"flag":"{V}","value":"0.1_9e1"}}',
    f'{{"flag":"{V}","value":"+0.95"}}',
]


def _is_seen(decision: Decision) -> bool:
    return isinstance(decision, Denied) or any(
        one.endswith((": lowered", "MPS limits it")) for one in decision.warnings
    )


@BOTH
@pytest.mark.parametrize("text", ABOVE)
def test_a_setting_above_the_share_is_found_in_whatever_document(text: str, by: Any) -> None:
    decision = decided(pod("0.2", container(env=[{"name": "X", "value": text}])), by)
    assert _is_seen(decision), decision


@BOTH
@pytest.mark.parametrize("on", WITHIN, ids=str)
def test_a_setting_above_the_share_is_not(on: dict[str, Any], by: Any) -> None:
    above = json.loads(json.dumps(on).replace("0.15", "0.95"))
    decision = decided(pod("0.2", container(**above)), by)
    assert _is_seen(decision), decision


TOO_LONG = [
    f"{V}=.1e+{'0' * 64}1",
    f"{JAX}=.1e+{'0' * 64}1",
    f"{JAX} : 0.1{'0' * 64}e1",
    f'{{"flag":"{V}","{"v" * 45}":"0.1{"0" * 60}e1"}}',
]


@pytest.mark.parametrize("text", TOO_LONG)
def test_a_number_that_is_longer_than_what_is_looked_at_cannot_be_read(text: str) -> None:
    decision = decided(pod("0.2", container(env=[{"name": "X", "value": text}])), policies("strategy: time-slicing"))
    assert isinstance(decision, Denied), decision
    assert "cannot be read" in decision.deny.message


LONG = ("0" * 65 + "e1", "0." + "0" * 62 + "9e99", "0" * 64 + ".9", "0" * 300 + "e1")


@pytest.mark.parametrize("by", [policies(), WARNED], ids=["mps", "time-slicing"])
@pytest.mark.parametrize("value", LONG, ids=range(len(LONG)))
@pytest.mark.parametrize("behind", ["", " --port=8000", ",--port=8000", "\n"])
def test_a_value_that_is_longer_than_what_is_looked_at_is_lowered_whole(value: str, behind: str, by: Any) -> None:
    first = mutated(pod("0.1", container(env=[{"name": "X", "value": f"{V}={value}{behind}"}])), by)
    assert environment(only_container(first))["X"] == f"{V}=0.1{behind}"
    assert mutated(first, by) == first


def test_a_value_of_an_own_spelling_that_is_longer_than_what_is_looked_at_cannot_be_read() -> None:
    prefix = "a-setting-whose-name-is-rather-long:"
    own = f'{{argument: --acme, value: "{prefix}{{fraction}}"}}'
    cluster = f"frameworks: [{{name: acme, memory: {{spellings: [{own}]}}, source: 'https://a.example'}}]"
    by = policies("strategy: time-slicing", cluster=cluster)
    for value, expected in (("0.1", Grant), (f"0.1{'0' * 60}e1", Denied)):
        text = f"--acme={prefix}{value}"
        assert isinstance(decided(pod("0.2", container(env=[{"name": "X", "value": text}])), by), expected), value


@BOTH
@pytest.mark.parametrize("number", ["0.1e1", "0.1E+1", "0.01e+2"])
def test_a_number_whose_exponent_may_be_behind_what_is_looked_at_is_not_read(number: str, by: Any) -> None:
    for before in range(30, 50):
        words = ["x", "--run", f"<arg>{V}</arg><arg{'b' * before}>{number}</arg>"]
        assert not _is_within(words, by), before


def _is_within(words: list[str], by: Any) -> bool:
    decision = decided(pod("0.2", container(command=words)), by)
    return isinstance(decision, Grant) and not decision.warnings
