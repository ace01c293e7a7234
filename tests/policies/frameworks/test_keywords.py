"""A memory setting that stands as a keyword in a word, a variable or a text counts, whoever reads it there."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.bypass.greedy import CONFIG_MAP
from tests.policies.pods import container, decided, granted, mutated, only_container, pod, policies

SLICED = policies("strategy: time-slicing")
VLLM = "vllm/vllm-openai:v0.11.0"
FORMS: list[dict[str, Any]] = [
    {"command": ["lm_eval", "--model", "vllm", "--model_args", "pretrained=m,gpu_memory_utilization={}"]},
    {"command": ["python", "-m", "x", "rollout.gpu_memory_utilization={}"]},
    {"command": ["python", "-c", "llm = LLM('m', gpu_memory_utilization = {}, dtype=\"auto\")"]},
    {"command": ["sh", "-c", "lighteval vllm model_name=m,gpu_memory_utilization={}; sleep 1"]},
    {"command": ["zsh", "-c", "lighteval vllm model_name=m,gpu_memory_utilization={}"]},
    {"command": ["sh", "-c", "cat >c.yaml <<E\ngpu_memory_utilization: {}\nE\npython t.py"]},
    {"env": [{"name": "ENGINE_KWARGS", "value": '{{"gpu_memory_utilization": {}, "seed": 1}}'}]},
    {"env": [{"name": "MODEL_ARGS", "value": "pretrained=m,gpu_memory_utilization={}"}]},
    {"command": ["python", "-c", "sgl.Engine(mem_fraction_static={})"], "image": "lmsysorg/sglang:v0.4"},
]


def said(form: dict[str, Any], value: str) -> dict[str, Any]:
    env = [{**one, "value": one["value"].format(value)} for one in form.get("env", ())]
    fields = {"image": VLLM} | form | {"env": [*env, {"name": "U", **CONFIG_MAP}]}
    if "command" in form:
        fields["command"] = [*form["command"][:-1], form["command"][-1].format(value)]
    return pod("0.2", container(**fields))


@pytest.mark.parametrize("form", FORMS)
def test_a_keyword_above_the_share_is_denied_where_nothing_else_limits_the_memory(form: dict[str, Any]) -> None:
    decision = decided(said(form, "0.95"), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"
    assert not isinstance(decided(said(form, "0.1"), SLICED), Denied)


@pytest.mark.parametrize("form", [one for one in FORMS if "image" not in one])
def test_a_keyword_above_the_share_is_a_warning_under_mps(form: dict[str, Any]) -> None:
    warnings = granted(said(form, "0.95")).warnings
    assert any('gpu_memory_utilization may be "0.95", more than the share' in one for one in warnings)


def test_a_keyword_that_cannot_be_read_is_denied_where_nothing_else_limits_the_memory() -> None:
    assert isinstance(decided(said(FORMS[3], "$U"), SLICED), Denied)
    assert not isinstance(decided(said(FORMS[3], "$GPU_SHARE_FRACTION"), SLICED), Denied)


@pytest.mark.parametrize(
    "text",
    [
        "f(gpu_memory_utilization: float = 0.9)", "if gpu_memory_utilization == 0.9: pass",
        "gpu_memory_utilization=0.9*x",
        "my_gpu_memory_utilization=0.9", "gpu-memory-utilization=0.9", '{"gpu_memory_utilization": {"type": 1}}',
    ],
)  # fmt: skip
def test_what_sets_no_keyword_to_a_number_is_none(text: str) -> None:
    assert not isinstance(decided(pod("0.2", container(image=VLLM, command=["python", "-c", text])), SLICED), Denied)


def test_a_keyword_within_the_share_stands_for_no_option() -> None:
    words = ["vllm", "serve", "m", "--chat-template", "gpu_memory_utilization=0.1"]
    made = only_container(mutated(pod("0.2", container(image=VLLM, command=words))))
    assert made["args"] == ["--gpu-memory-utilization=0.2"]
