"""A command line in a variable is lowered where it stands, and what is made of it is judged by what it becomes."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, denied, environment, granted, mutated, only_container, pod, policies

USE = "--gpu-memory-utilization"
ABBREVIATED = "--gpu-memory-util"
SLICED = policies("strategy: time-slicing\nmemory: {headroom: '0.02'}")
BOTH = pytest.mark.parametrize("by", [policies("memory: {headroom: '0.02'}"), SLICED], ids=["mps", "time-slicing"])


def of(command: list[str], **env: str) -> dict[str, Any]:
    return pod("0.1", container(image="me/x:1", command=command, env=[{"name": a, "value": b} for a, b in env.items()]))


def sh(text: str, **env: str) -> dict[str, Any]:
    return of(["sh", "-c", text], **env)


@BOTH
@pytest.mark.parametrize(
    ("on", "name", "lowered"),
    [
        (sh("vllm serve m ${ARGS}", ARGS=f"--seed=1 {USE}=0.9"), "ARGS", f"--seed=1 {USE}=0.08"),
        (sh("vllm serve m $(ARGS)", ARGS=f"{USE} 0.9"), "ARGS", f"{USE} 0.08"),
        (sh('A="$ARGS --port 90"; vllm serve m $A', ARGS=f"{USE}=0.9"), "ARGS", f"{USE}=0.08"),
        (of(["vllm", "serve", "m", "$(ARG)"], ARG=f"{USE}=0.9"), "ARG", f"{USE}=0.08"),
        (of(["/start.sh"], ARG=f"{USE}=0.9", ALL="--max-model-len 4096 $(ARG)"), "ARG", f"{USE}=0.08"),
        (of(["/start.sh"], ARG=f"{USE}=9"), "ARG", f"{USE}=0.08"),
        (of(["/start.sh"], ARG=f"{USE}=0.9 {ABBREVIATED}=0.9"), "ARG", f"{USE}=0.08 {ABBREVIATED}=0.08"),
        (sh("exec vllm serve m $A", A=f"{ABBREVIATED} 0.9 {USE} 0.9"), "A", f"{ABBREVIATED} 0.08 {USE} 0.08"),
        (of(["/start.sh"], ARG=f"{USE}=1."), "ARG", f"{USE}=0.08"),
        (of(["/start.sh"], ARG=f"Use {USE}=0.9."), "ARG", f"Use {USE}=0.08."),
    ],
)  # fmt: skip
def test_it_is_lowered_whoever_names_it(on: Any, name: str, lowered: str, by: Any) -> None:
    after = mutated(on, by)
    assert environment(only_container(after))[name] == lowered
    assert only_container(after)["command"] == only_container(on)["command"]
    assert mutated(after, by) == after
    (warning,) = [one for one in granted(on, by).warnings if USE in one and "cannot be added" not in one]
    assert f'{USE} in the variable "{name}" was' in warning
    assert warning.endswith(": lowered")


@BOTH
@pytest.mark.parametrize(
    "on",
    [
        sh("vllm serve m ${A}01e1", A=f"{USE}=0.0"),  # 0.001e1 before, and 0.0801e1 by the share
        sh("exec vllm serve m $(A)01e1", A=f"{USE}=0.0"),
        sh("vllm serve m $B", A=f"{USE}=0.0", B="$(A)01e1"),
    ],
)
def test_what_becomes_more_than_the_share_by_that_is_denied(on: Any, by: Any) -> None:
    decision = decided(on, by)
    assert isinstance(decision, Denied)
    assert '"0.0801e1", more than the share' in decision.deny.message


@BOTH
def test_a_word_that_becomes_more_by_that_is_lowered(by: Any) -> None:
    after = mutated(of(["vllm", "serve", "m", "$(A)01e1"], A=f"{USE}=0.0"), by)
    assert only_container(after)["command"][-1] == f"{USE}=0.08"
    assert environment(only_container(after))["A"] == f"{USE}=0.08"
    assert mutated(after, by) == after


@pytest.mark.parametrize("value", [f"'{USE}=0.9'", f"{USE}=${{U:-0.9}}", f"{USE}=0.9 $C", f"[{USE}=0.9]"])
def test_one_with_quotes_references_or_brackets_is_denied(value: str) -> None:
    decision = decided(of(["/start.sh"], ARGS=value, C="$C", U=""), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"


IN_TEXTS = [
    {"A": f"{USE}=0.0", "TEXT": "$(A)01e1"},
    {"TEXT": f'Revert "Set {USE}=0.95"\n\nThis reverts commit 1a2b.'},
    {"TEXT": "docs: don't use XLA_PYTHON_CLIENT_MEM_FRACTION=.9"},
]


@pytest.mark.parametrize("env", IN_TEXTS, ids=["made of another one", "message", "title"])
def test_what_a_text_in_a_variable_names_is_a_warning_under_mps_and_both_say_in_which(env: dict[str, str]) -> None:
    (warning,) = [one for one in granted(of(["/start.sh"], **env)).warnings if one.endswith("MPS limits it")]
    assert 'in the variable "TEXT" is' in warning
    assert 'in the variable "TEXT" to' in denied(of(["/start.sh"], **env), SLICED).message
    by = policies("frameworks: {onConflict: deny}")
    assert "(_default.yaml:1)" in denied(of(["/start.sh"], **env), by).message


@pytest.mark.parametrize("value", [f"{USE}=0.9; x {ABBREVIATED}=0.9", f"{USE}=0.05 {ABBREVIATED}=0.9"])
def test_an_abbreviation_that_stays_is_not_said_to_be_lowered(value: str) -> None:
    on = of(["/start.sh"], ARGS=value)
    decision = decided(on, SLICED)
    assert isinstance(decision, Denied)
    assert f"(by {ABBREVIATED})" in decision.deny.message
    (warning,) = [one for one in granted(on).warnings if f"(by {ABBREVIATED})" in one]
    assert warning.endswith('may be "0.9", more than the share; MPS limits it')
