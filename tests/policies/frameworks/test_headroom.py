"""A program that does not start without all of its fraction needs headroom, and its users are told."""

import json
import re
from typing import Any

import pytest

from policies.policy_set import PolicySet
from tests.policies.partitioned import by
from tests.policies.pods import container, granted, pod, policies

VLLM = container(image="vllm/vllm-openai:v0.11.0")
FLAG = "--gpu-memory-utilization"
DJL = container(image="deepjavalibrary/djl-serving:0.33.0-lmi")
ALL = {
    "an argument": VLLM | {"args": [f"{FLAG}=0.2"]},
    "what the node tells": VLLM | {"args": [f"{FLAG}=$(GPU_SHARE_FRACTION)"]},
    "in a shell's text": VLLM | {"command": ["sh", "-c", f"vllm serve m {FLAG} 0.20"]},
    "what the node tells a shell": VLLM | {"command": ["sh", "-c", f"vllm serve m {FLAG}=$GPU_SHARE_FRACTION"]},
    "by a variable": VLLM | {"args": [f"{FLAG}=$(F)"], "env": [{"name": "F", "value": "0.2"}]},
    "of another framework": DJL | {"env": [{"name": "OPTION_GPU_MEMORY_UTILIZATION", "value": "0.2"}]},
}
WHOLE = [("1", policies()), ("1", policies("strategy: time-slicing")), ("0.25", by())]


def test_a_program_that_needs_headroom_is_warned_about_without_any() -> None:
    (warning,) = granted(pod("0.2", VLLM)).warnings
    assert "memory.headroom" in warning


@pytest.mark.parametrize(
    ("share", "policy"),
    [("0.2", "memory: {headroom: '0.02'}"), ("0.25", ""), ("1", ""), ("0.2", "strategy: time-slicing")],
)
def test_where_there_is_room_nothing_is_said_of_it(share: str, policy: str) -> None:
    assert not any("headroom" in warning for warning in granted(pod(share, VLLM), policies(policy)).warnings)


@pytest.mark.parametrize("own", ALL.values(), ids=ALL)
@pytest.mark.parametrize("allocation", ["", "allocation: dra\n"])
def test_a_users_own_value_that_is_all_of_the_share_is_a_warning_that_says_what_leaves_some(
    own: dict[str, Any], allocation: str
) -> None:
    (warning,) = granted(pod("0.2", own), policies(allocation)).warnings
    assert "does not start with all of its share: leave about 0.5 GiB of it, by memory.headroom" in warning
    (warning,) = granted(pod("0.2", own), policies(f"{allocation}memory: {{headroom: '0.02'}}")).warnings
    assert warning.endswith(" is to be 0.18 at most")


@pytest.mark.parametrize("own", ALL.values(), ids=ALL)
@pytest.mark.parametrize(("share", "policy"), [("0.3", ""), ("0.2", "strategy: time-slicing")])
def test_of_one_that_leaves_some_nothing_is_said(own: dict[str, Any], share: str, policy: str) -> None:
    written = json.loads(re.sub(r"\$\(?GPU_SHARE_FRACTION\)?", "0.2", json.dumps(own)))
    assert granted(pod(share, written), policies(policy)).warnings == ()


def test_a_second_call_says_of_what_the_first_one_has_set_the_same() -> None:
    first = granted(pod("0.2", VLLM)).warnings
    assert granted(pod("0.2", VLLM | {"args": [f"{FLAG}=0.2"]})).warnings == first


@pytest.mark.parametrize("value", ["1", "1.0", "$(GPU_SHARE_FRACTION)"])
@pytest.mark.parametrize(("share", "by_policy"), WHOLE)
def test_all_of_a_whole_gpu_or_of_a_partition_is_too_much_as_well(value: str, share: str, by_policy: PolicySet) -> None:
    (warning,) = granted(pod(share, VLLM | {"args": [f"{FLAG}={value}"]}), by_policy).warnings
    assert warning.startswith("vllm does not start with all of its share: let --gpu-memory-utilization leave about 0.5")


def test_what_needs_no_headroom_is_not_warned_about() -> None:
    assert granted(pod("0.2", container(image="tensorflow/serving"))).warnings == ()
