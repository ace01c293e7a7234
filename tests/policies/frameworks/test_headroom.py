"""A program that does not start without all of its fraction needs headroom, and its users are told."""

import pytest

from tests.policies.pods import container, granted, pod, policies

VLLM = container(image="vllm/vllm-openai:v0.11.0")


def test_a_program_that_needs_headroom_is_warned_about_without_any() -> None:
    (warning,) = granted(pod("0.2", VLLM)).warnings
    assert "memory.headroom" in warning


@pytest.mark.parametrize(
    ("share", "policy"),
    [("0.2", "memory: {headroom: '0.02'}"), ("0.25", ""), ("1", ""), ("0.2", "strategy: time-slicing")],
)
def test_where_there_is_room_nothing_is_said_of_it(share: str, policy: str) -> None:
    assert not any("headroom" in warning for warning in granted(pod(share, VLLM), policies(policy)).warnings)


def test_of_a_users_own_value_within_the_share_nothing_is_said() -> None:
    own = VLLM | {"args": ["--gpu-memory-utilization=0.2"]}
    assert granted(pod("0.2", own)).warnings == ()


def test_what_needs_no_headroom_is_not_warned_about() -> None:
    assert granted(pod("0.2", container(image="tensorflow/serving"))).warnings == ()
