"""A setting in JSON, YAML or a list, in a word or a variable, ends where the next sign of it stands."""

import json
from typing import Any

import pytest

from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, pod, policies

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
]


@BOTH
@pytest.mark.parametrize("text", ABOVE)
def test_a_setting_above_the_share_is_found_in_whatever_document(text: str, by: Any) -> None:
    decision = decided(pod("0.2", container(env=[{"name": "X", "value": text}])), by)
    assert isinstance(decision, Denied) or any("lowered" in one for one in decision.warnings), decision


@BOTH
@pytest.mark.parametrize("on", WITHIN, ids=str)
def test_a_setting_above_the_share_is_not(on: dict[str, Any], by: Any) -> None:
    above = json.loads(json.dumps(on).replace("0.15", "0.95"))
    decision = decided(pod("0.2", container(**above)), by)
    assert isinstance(decision, Denied) or any("lowered" in one for one in decision.warnings), decision


@pytest.mark.parametrize("text", [f"{V}=.1e+{'0' * 64}1", f"{JAX}=.1e+{'0' * 64}1", f"{JAX} : 0.1{'0' * 64}e1"])
def test_a_number_that_is_longer_than_what_is_looked_at_cannot_be_read(text: str) -> None:
    decision = decided(pod("0.2", container(env=[{"name": "X", "value": text}])), policies("strategy: time-slicing"))
    assert isinstance(decision, Denied), decision
    assert "cannot be read" in decision.deny.message
