"""A bound that a pod breaks is said in the unit in which it asks: shares, vGPUs or whole GPUs."""

from typing import Any

import pytest

from tests.policies.pods import GPU, denied, limited, pod, policies


@pytest.mark.parametrize(
    ("on", "rules", "words", "fix"),
    [
        (
            pod(None, limited(quantity=12)),
            "",
            "asks for 12 vGPUs, at most 10 (1 of a GPU) is",
            "Ask for 10 vGPUs or less.",
        ),
        (pod(None, limited(quantity=6)), "maximum: '0.55'", "6 vGPUs, at most 5 (0.55 of a GPU)", "Ask for 5 vGPUs or"),
        (
            pod(None, limited(quantity=1)),
            "maximum: '0.05'",
            "1 vGPU, at most 0.05 of a GPU",
            '"0.05" or less by the ann',
        ),
        (
            pod(None, limited(quantity=1)),
            "minimum: '0.15'",
            "1 vGPU, at least 2 (0.15 of a GPU)",
            "Ask for 2 vGPUs or m",
        ),
        (pod("0.7"), "maximum: '0.5'", "asks for 0.7 of a GPU, at most 0.5 is allowed", 'Ask for "0.5" or less.'),
        (pod("0.2"), "minimum: '0.5'", "asks for 0.2 of a GPU, at least 0.5 is allowed", 'Ask for "0.5" or more.'),
        (
            pod(None, limited("a", 4), limited("b", 3)),
            "podMaximum: '0.6'",
            "together ask for 7 vGPUs, at most 6 (0.6 of a GPU) per pod",
            "Bring the sum to 6 vGPUs or less.",
        ),
        (
            pod(None, limited(quantity=2, resource=GPU)),
            "whole: gpus",
            "asks for 2 whole GPUs, at most 1 is allowed",
            "Ask for 1 whole GPU or less.",
        ),
    ],
)
def test_a_bound_is_said_in_the_unit_of_what_is_asked(on: dict[str, Any], rules: str, words: str, fix: str) -> None:
    message = denied(on, policies(f"share: {{{rules}}}")).message
    assert words in message
    assert fix in message
