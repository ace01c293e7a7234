"""Upper bounds hold for what is granted; one that a pod breaks is said in the unit in which it asks."""

import re
from typing import Any

import pytest

from policies.policy_set import PolicySet
from tests.policies.pods import GPU, container, denied, granted, limited, pod, policies, vgpus

NINE = [container(f"c{number}") for number in range(9)]


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
            "No whole number of vGPUs fits here: ask the administrator",
        ),
        (
            pod(None, limited(quantity=1)),
            "minimum: '0.15'",
            "1 vGPU, at least 2 (0.15 of a GPU)",
            "Ask for 2 vGPUs or m",
        ),
        (pod("0.7"), "maximum: '0.5'", "asks for 0.7 of a GPU, at most 0.5 is allowed", 'Ask for "0.5" or less.'),
        (pod("0.2"), "minimum: '0.5'", "asks for 0.2 of a GPU, at least 0.5 is allowed", 'Ask for "0.5" or more.'),
        (pod("0.2"), "minimum: '0.45', rounding: exact", "at least 0.45 is allowed", 'Ask for "0.5" or more.'),
        (
            pod(None, limited(quantity=1)),
            "minimum: '0.31', maximum: '0.35'",
            "1 vGPU, at least 4 (0.31 of a GPU)",
            "No whole number of vGPUs fits here",
        ),
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


@pytest.mark.parametrize(
    ("share", "rules", "says", "fix"),
    [
        ("0.45", "maximum: '0.45'", "0.45 of a GPU, which is rounded up to 5 vGPUs, at most 0.45", 'Ask for "0.4" or'),
        ("0.401", "maximum: '0.45'", "rounded up to 5 vGPUs", 'Ask for "0.4" or less.'),
        ("0.7", "maximum: '0.45'", "asks for 0.7 of a GPU, at most 0.45", 'Ask for "0.4" or less.'),
        ("0.01", "maximum: '0.05', minimum: '0.01'", "rounded up to 1 vGPU, at most 0.05", "No whole number of vGPUs"),
        ("0.3", "maximum: '0.35', minimum: '0.31'", "asks for 0.3 of a GPU, at least 0.31", "0.31"),
        ("0.32", "maximum: '0.35', minimum: '0.31'", "rounded up to 4 vGPUs", "No whole number of vGPUs"),
    ],
)
def test_a_share_that_is_rounded_up_past_the_maximum_is_denied_with_the_share_that_fits(
    share: str, rules: str, says: str, fix: str
) -> None:
    message = denied(pod(share), policies(f"share: {{{rules}}}")).message
    assert says in message
    assert fix in message


def _is_granted_as_named(message: str, by: PolicySet) -> bool:
    """Ask for the share that a denial names; returns whether it names one."""
    if named := re.search(r'Ask for "([0-9.]+)" or (?:less|more)', message):
        granted(pod(named[1]), by)
    elif named := re.search(r"Ask for ([0-9]+) vGPUs? or (?:less|more) by a limit", message):
        granted(pod(None, limited(quantity=named[1])), by)
    return named is not None


@pytest.mark.parametrize("per_gpu", [1, 3, 7, 10, 48, 60])
@pytest.mark.parametrize("maximum", ["0.05", "0.25", "0.333", "0.45", "0.501", "0.999", "1", "2"])
@pytest.mark.parametrize("rounding", ["up", "exact"])
def test_the_share_that_a_denial_names_is_granted(per_gpu: int, maximum: str, rounding: str) -> None:
    by = policies(f"share: {{maximum: '{maximum}', rounding: {rounding}}}", f"vgpusPerGpu: {per_gpu}")
    deny = denied(pod("9"), by)
    assert deny.code == "ShareAboveMaximum"
    if not _is_granted_as_named(deny.message, by):
        assert "No whole number of vGPUs fits" in deny.message
        assert float(maximum) * per_gpu < 1


@pytest.mark.parametrize("per_gpu", [1, 3, 7, 10, 16, 48])
@pytest.mark.parametrize("minimum", ["0.05", "0.333", "0.501"])
@pytest.mark.parametrize("most", ["", "maximum: '0.55', ", "podMaximum: '0.6', "])
@pytest.mark.parametrize("rounding", ["up", "exact"])
def test_so_is_the_one_that_a_denial_of_less_names(per_gpu: int, minimum: str, most: str, rounding: str) -> None:
    by = policies(f"share: {{minimum: '{minimum}', {most}rounding: {rounding}}}", f"vgpusPerGpu: {per_gpu}")
    deny = denied(pod("0.01"), by)
    assert deny.code == "ShareBelowMinimum"
    if not _is_granted_as_named(deny.message, by):
        assert "No whole number of vGPUs fits" in deny.message
        assert most
        assert -(-float(minimum) * per_gpu // 1) > float(most.split("'")[1]) * per_gpu


@pytest.mark.parametrize("share", ["0.41", "0.45", "0.5"])
def test_a_share_that_is_rounded_up_to_the_maximum_is_granted(share: str) -> None:
    assert vgpus(granted(pod(share), policies("share: {maximum: '0.5'}"))) == {"main": 5}


def test_a_minimum_holds_for_what_is_asked_so_for_what_is_granted_too() -> None:
    # A share of 0.01 takes a whole vGPU from others: whoever needs so little should hear what the least is.
    assert denied(pod("0.01"), policies("share: {minimum: '0.1'}")).code == "ShareBelowMinimum"
    assert vgpus(granted(pod("0.11"), policies("share: {minimum: '0.11'}"))) == {"main": 2}


@pytest.mark.parametrize("share", ["0.101", "0.111"])
def test_many_small_shares_that_are_rounded_up_are_added_up_as_granted(share: str) -> None:
    named = {f"container.gpu-share.dev/c{number}": share for number in range(9)}
    deny = denied(pod(None, *NINE, annotations=named), policies("share: {minimum: '0.1'}"))
    assert deny.code == "PodShareAboveMaximum"
    assert "together get 18 vGPUs (1.8 of a GPU), each share rounded up, at most 1 per pod" in deny.message
    assert "Bring the sum to 10 vGPUs or less." in deny.message


def test_what_a_runtime_class_adds_to_a_pod_brings_no_devices_and_counts_nothing() -> None:
    granted(pod("1", overhead={"cpu": "1", "gpu-share.dev/vgpu": "5"}))
