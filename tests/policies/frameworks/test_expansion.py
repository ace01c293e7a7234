"""What `$(NAME)` means, by the kubelet's rules."""

from typing import Any

import msgspec
import pytest

from policies.frameworks.allowance import Allowance
from policies.frameworks.expansion import A_NAME, A_NUMBER, A_VALUE, ANYTHING, TOLD, Variables
from policies.pod import Container

ENV = [
    {"name": "A", "value": "a"},
    {"name": "B", "value": "$(A)b"},
    {"name": "LATE", "value": "$(Z)"},
    {"name": "Z", "value": "z"},
    {"name": "EMPTY"},
    {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
    {"name": "NOTE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}}},
    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    {"name": "CUDA_MPS_X", "value": "mine"},
    {"name": "A2", "value": "$$(A)"},
    {"name": "TWICE", "value": "1"},
    {"name": "TWICE", "value": "$(TWICE)2"},
]


def variables(**fields: Any) -> Variables:
    return Variables(msgspec.convert({"name": "main", "env": ENV, **fields}, Container), Allowance())


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "a"),
        ("x$(A)y$(B)", "xayab"),
        ("$(LATE)", "$(Z)"),
        ("$(EMPTY)|", "|"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$$", "$"),
        ("$A ${A} $", "$A ${A} $"),
        ("$($(A))", "$($(A))"),
        ("$(A", "$(A"),
        ("$(A $(B)", "$(A $(B)"),
        ("()$(A))", "()a)"),
        ("$(A2)", "$(A)"),
        ("$(TWICE)", "12"),
        ("$(MAP)", ANYTHING),
        ("$(NOTE)", ANYTHING),
        ("$(POD)", A_NAME),
        ("$(CPU)", A_NUMBER),
        ("$(GPU_SHARE_FRACTION)", TOLD),
        ("$(GPU_SHARE_MEMORY_MIB)", A_NUMBER),
        ("$(CUDA_MPS_X)", A_VALUE),
    ],
)
def test_a_word_is_expanded_once(text: str, expanded: str) -> None:
    assert variables().in_words(text) == expanded


@pytest.mark.parametrize("name", ["NOBODY", "GPU_SHARE_FRACTION", "NVIDIA_VISIBLE_DEVICES"])
def test_with_env_from_a_name_that_the_pod_does_not_set_may_be_anything(name: str) -> None:
    own = variables(envFrom=[{"configMapRef": {"name": "a"}}])
    assert own.in_words(f"$({name})") == ANYTHING
    assert own.in_words("$(A)$(LATE)") == f"a{ANYTHING}"
