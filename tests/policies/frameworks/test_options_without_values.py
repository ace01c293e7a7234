"""An option without a value in a variable or a text has none: what the next option is set to is not its own."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, denied, environment, granted, mutated, only_container, pod, policies

SLICED = policies("strategy: time-slicing")
BOTH = pytest.mark.parametrize("by", [policies(), SLICED], ids=["mps", "time-slicing"])
V = "--gpu-memory-utilization"
NONE = (
    f"{V} --port=8000",
    f"{V}= --port=8000",
    f"{V}: --port=8000",
    f"{V},--port=8000",
    f"{V}\n-p=8000",
    f"flags: {V}, --max-model-len=8192",
    f"{V} &quot;--port=8000",
    f'["{V}","--port=8000"]',
    f'{{"flags":["{V}","--port=8000"]}}',
    f'{{"flag":"{V}","next":"--port=8000"}}',
    f"<arg>{V}</arg><arg>--port=8000</arg>",
    f"<arg>{V}</arg><arg>m</arg><arg>--port=8000</arg>",
    f"http://h/?a={V}&b=1000",
    f"{V} http://h:8000/x",
    f"{V} >x=256",
    f"{V} >>/x=256",
    "--num-gpu --port=8000",
)


def texts_in(on: dict[str, Any]) -> list[str]:
    of = only_container(on)
    return [*of.get("args", ()), *(value for name, value in environment(of).items() if name == "X")]


@BOTH
@pytest.mark.parametrize("text", NONE)
@pytest.mark.parametrize("is_argument", [True, False])
def test_what_stands_behind_an_option_without_a_value_stays_as_it_is(text: str, by: Any, *, is_argument: bool) -> None:
    text = f"see {text}"  # else an argument of its own
    fields = {"args": ["/start.sh", text]} if is_argument else {"env": [{"name": "X", "value": text}]}
    on = pod("0.2", container(**fields))
    assert granted(on, by).warnings == ()
    assert texts_in(mutated(on, by))[-1] == text


@BOTH
def test_an_abbreviation_beside_its_framework_takes_no_value_of_the_next_option(by: Any) -> None:
    on = pod("0.2", container(command=["vllm", "serve", "m"], env=[{"name": "X", "value": "--gpu --port=8000"}]))
    assert not any("lowered" in one for one in granted(on, by).warnings)
    assert texts_in(mutated(on, by))[-1] == "--gpu --port=8000"


STILL_FOUND = (
    f"<arg>{V}</arg><!--c--><arg>0.95</arg>",
    f"<arg>{V}</arg><arg><!--c-->0.95</arg>",
    f"<name>{V}</name><type>float</type><value>0.95</value>",
    f'<arg name="{V}">0.95</arg>',
    f'<arg name="{V}"><value>0.95</value></arg>',
    f'<arg name="{V}">part</arg><value>0.95</value>',
    f'<arg name="{V}" value="0.95"/>',
    f"{V}&quot;:0.95",
    f"{V} --port=8000 {V}=0.95",
)


@pytest.mark.parametrize("text", STILL_FOUND)
def test_a_value_in_a_document_is_found_beside_what_is_none(text: str) -> None:
    decision = decided(pod("0.2", container(env=[{"name": "X", "value": text}])), SLICED)
    assert isinstance(decision, Denied) or any("lowered" in one for one in decision.warnings), decision


@BOTH
@pytest.mark.parametrize(
    "text", ["--cuda-memory-fraction  --mem-fraction-static=1.5", f"{V}/--mem-fraction-static=1.5"]
)
def test_a_value_is_lowered_once_and_for_the_option_in_front_of_it(text: str, by: Any) -> None:
    first = mutated(pod("0.2", container(env=[{"name": "X", "value": text}])), by)
    lowered = "0.8" if by is not SLICED else "0.16"
    assert texts_in(first) == [text.replace("1.5", lowered)]
    assert mutated(first, by) == first


def test_settings_that_would_be_lowered_in_the_same_place_are_denied() -> None:
    text = f"{V}=0.95/--cuda-memory-fraction=0.95"
    deny = denied(pod("0.2", container(env=[{"name": "X", "value": text}])), SLICED)
    assert deny.code == "MemoryArgumentAboveShare"
