"""A setting above the share that is hidden in what a shell computes is found, where nothing else holds the memory."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.grant import Denied
from tests.bypass.attempt import variable
from tests.policies.pods import container, decided, pod, policies

HIDDEN = yaml.load((Path(__file__).parent / "hidden_texts.yaml").read_text(), yaml.CSafeLoader)
SLICED = policies("strategy: time-slicing")


def command_lines(one: dict[str, Any]) -> list[list[str]]:
    words = one.get("words", ["-c", one.get("text", "")])
    shells = [one["shell"]] if "shell" in one else ["bash", "dash"]
    return [[*filter(None, [shell]), *words] for shell in shells]


@pytest.mark.parametrize("some", [HIDDEN[start::50] for start in range(50)], ids=range(50))  # many: each of them costs
def test_a_setting_that_a_shell_makes_up_is_denied_under_time_slicing(some: list[dict[str, Any]]) -> None:
    for one in some:
        env = [variable(name, value) for name, value in ({"B": "0.1", "L": "q"} | one.get("env", {})).items()]
        for words in command_lines(one):
            decision = decided(pod("0.2", container(command=words, env=env)), SLICED)
            assert isinstance(decision, Denied), words
            assert decision.deny.code == "MemoryArgumentAboveShare", words
