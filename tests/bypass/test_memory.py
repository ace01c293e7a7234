"""What a program is handed in the end is within the share, or MPS limits it and a warning says so, or it is denied."""

import re
from collections.abc import Iterator
from ctypes import c_float
from typing import Any

import pytest

from policies.grant import Denied
from tests.bypass.corpus_memory import ALLOWING, greedy
from tests.bypass.greedy import Greedy, Outcome
from tests.policies.pods import decided, granted, mutated, only_container, policies

GREEDY = greedy()
MPS = policies(ALLOWING)
SLICED = policies(f"strategy: time-slicing\n{ALLOWING}")
_DONE = (": lowered", ": replaced by the share")
_LIMITED = "; MPS limits it"
_OPTIONS = ("gpu-memory-utilization", "per-process-gpu-memory-fraction")
_VARIABLES = ("XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION")


def test_there_are_more_than_a_hundred_and_no_two_are_the_same() -> None:
    assert len(GREEDY) > 100
    assert len({one.name for one in GREEDY}) == len(GREEDY)


@pytest.mark.parametrize("one", GREEDY, ids=lambda one: one.name[:60])
def test_a_memory_setting_above_the_share(one: Greedy) -> None:
    check(one, MPS, one.under_mps)
    check(one, SLICED, one.sliced)


def check(one: Greedy, by: Any, expected: Outcome) -> None:
    decision = decided(one.pod(), by)
    if expected == "limited" and not isinstance(decision, Denied):
        assert any(text.endswith(_LIMITED) for text in granted(one.pod(), by).warnings)
        return
    if expected in ("denied", "limited"):
        assert isinstance(decision, Denied), decision
        assert decision.deny.code == "MemoryArgumentAboveShare"
        return
    said = granted(one.pod(), by).warnings
    about = [text for text in said if text.endswith((*_DONE, _LIMITED)) or "cannot be read" in text]
    assert [text.endswith(_DONE) for text in about][:1] == {"lowered": [True], "warned": [False], "kept": []}[expected]
    after = mutated(one.pod(), by)
    if expected != "warned":
        # As a float of 32 bits: to some frameworks nothing is no limit.
        assert all(c_float(number).value > 0 and number <= 0.2 for number in _numbers(only_container(after)))
    assert mutated(after, by) == after


def _numbers(one: dict[str, Any]) -> Iterator[float]:
    """Read what the kubelet hands to the program as a program would: an oracle that knows no rules."""
    values: dict[str, str] = {}
    for variable in one.get("env", ()):
        values[variable["name"]] = _expanded(variable.get("value", ""), values)
    told = {"GPU_SHARE_FRACTION": "0.2"} | values
    words = [_expanded(word, told) for word in [*one.get("command", ()), *one.get("args", ())]]
    values |= dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("_", "-")
        if word.startswith("--") and len(name) > 3 and any(full.startswith(name) for full in _OPTIONS):
            text = value if equals else words[place + 1]
            if float(text) <= 1:
                yield float(text)
    yield from (float(value) for name, value in values.items() if name in _VARIABLES and value)
    for item in ",".join(value for name, value in values.items() if "ALLOC_CONF" in name).replace(" ", "").split(","):
        if item.startswith("per_process_memory_fraction:"):
            yield float(item.partition(":")[2])
    if limit := values.get("CUPY_GPU_MEMORY_LIMIT"):
        yield float(limit.removesuffix("%")) / 100


def _expanded(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\$|\$\(([^)]*)\)", lambda m: "$" if m[0] == "$$" else values.get(m[1], m[0]), text)
