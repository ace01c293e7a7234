"""What a number begins with does not hide that the rest of it is computed."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, pod, policies

SLICED = policies("strategy: time-slicing")
NAMES = ("--gpu-mem", "--mem-frac", "--gpu-memory-utilization")
VALUES = (".$((9))", ".$(nproc)", '".$PART"', "+.$((9))", "+$((9))", "0.$((9))", ".${UNSET}", ".$CPUS", ".{9,5}")
ENV: list[dict[str, Any]] = [
    {"name": "PART", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
    {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
]


def is_denied(command: list[str]) -> bool:
    decision = decided(pod("0.2", container(image="registry.example/app:1", command=command, env=ENV)), SLICED)
    return isinstance(decision, Denied) and decision.deny.code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("sign", ["=", " "])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", NAMES)
def test_a_fraction_that_is_computed_behind_a_point_or_a_sign_is_denied(name: str, value: str, sign: str) -> None:
    assert is_denied(["bash", "-c", f"./serve m {name}{sign}{value}"])


@pytest.mark.parametrize("name", NAMES)
def test_so_is_one_in_a_text_that_a_program_may_put_on_a_command_line(name: str) -> None:
    assert is_denied(["./serve", "--more", f"{name} .$(PART)"])
    assert is_denied(["./serve", "--more", f'{{"args": "{name}=.$(PART)"}}'])


@pytest.mark.parametrize("value", [".1", "+.1", "0.2", "./models", "-x", "model.bin"])
@pytest.mark.parametrize("name", NAMES[:2])
def test_one_within_the_share_and_what_is_none_is_granted(name: str, value: str) -> None:
    assert not is_denied(["bash", "-c", f"./serve m {name} {value}"])
