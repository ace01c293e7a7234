"""What JSON in a word or variable says, as launchers make words and assignments of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.frameworks.expansion import ANYTHING, TOLD
from policies.frameworks.json_words import json_words
from policies.frameworks.shell.plain_words import BETWEEN
from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, pod, policies

BOTH = pytest.mark.parametrize("by", [policies(), policies("strategy: time-slicing")], ids=["mps", "time-slicing"])
JAX = "XLA_PYTHON_CLIENT_MEM_FRACTION"


def pieces(text: str) -> list[str]:
    return json_words(text).split(f" {BETWEEN} ")


def test_a_list_is_words_behind_each_other_and_a_member_an_assignment() -> None:
    assert pieces('["--port", 80, ["a", null]]') == ["--port 80 ", "a None"]
    assert pieces('{"A": "1", "B": {"C": true}}') == ["A=1", "B=", "C=True"]
    assert pieces('{"A": "1", "A": "2"}') == ["A=1", "A=2"]
    assert pieces('[{"name": "A", "value": "1"}]') == ["", "A=1", "name=A", "value=1"]
    assert pieces('{"A": "[\\"-b\\", \\"c\\"]"}') == ['A=["-b", "c"]', "-b c"]


NO_DOCUMENTS = ["", "x", "{}x", '{"a": ', "[" * 100_000, '["\ue003"]', '["\\ue000"]', f"[1{',1' * 9000}]"]


@pytest.mark.parametrize("text", NO_DOCUMENTS, ids=range(len(NO_DOCUMENTS)))
def test_what_is_no_document_or_one_that_nobody_writes_stays_as_it_is(text: str) -> None:
    assert json_words(text) == text


@pytest.mark.parametrize("mark", [TOLD, ANYTHING])
def test_what_admission_cannot_read_stays_that(mark: str) -> None:
    assert pieces(f'["--gpu={mark}", "x"]') == [f"--gpu={mark} x"]
    assert json_words(f'["{mark}\\ue003"]') == f'["{mark}\\ue003"]'  # as if there were another


@given(
    st.recursive(
        st.text(st.characters(exclude_characters="\0\x7f", max_codepoint=0x3FF)) | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    )
)
def test_no_text_of_a_document_is_lost(value: Any) -> None:
    written = json_words(json.dumps([value]))

    def texts(of: Any) -> list[str]:
        match of:
            case dict():
                return [one for pair in of.items() for part in pair for one in texts(part)]
            case list():
                return [one for part in of for one in texts(part)]
            case _:
                return [str(of)]

    assert all(one in written for one in texts(value))


WITHIN: list[dict[str, Any]] = [
    {"env": [{"name": "X", "value": '["--gpu-memory-utilization","0.15","--port","8000"]'}]},
    {"env": [{"name": "X", "value": '["--gpu-memory-utilization=0.15","--port=8000"]'}]},
    {"env": [{"name": "X", "value": "--gpu-memory-utilization=0.15,--port=8000"}]},
    {"env": [{"name": "X", "value": f'{{"env":{{"{JAX}":"0.15","A":"b"}}}}'}]},
    {"env": [{"name": "X", "value": f'[{{"name":"{JAX}","value":"0.15"}}]'}]},
    {"env": [{"name": "X", "value": f'env:\n- name: {JAX}\n  value: "0.15"\n'}]},
    {"command": ["ray", "job", "submit", "--runtime-env-json", f'{{"env_vars":{{"{JAX}":"0.15","B":"1"}}}}']},
    {"args": ["--note", "we set --gpu-memory-utilization to 0.15."]},
    {"env": [{"name": "X", "value": '{"args":["--gpu-memory-utilization=$(GPU_SHARE_FRACTION)","--port=80"]}'}]},
]


@BOTH
@pytest.mark.parametrize("on", WITHIN, ids=str)
def test_a_setting_within_the_share_is_granted_however_launchers_are_told(on: dict[str, Any], by: Any) -> None:
    assert isinstance(decided(pod("0.2", container(**on)), by), Grant)


@BOTH
@pytest.mark.parametrize("on", WITHIN[:-2], ids=str)
def test_a_setting_above_the_share_is_not(on: dict[str, Any], by: Any) -> None:
    above = json.loads(json.dumps(on).replace("0.15", "0.95"))
    decision = decided(pod("0.2", container(**above)), by)
    assert isinstance(decision, Denied) or any("lowered" in one for one in decision.warnings), decision
