"""No way past the share works: each attempt is denied, or harmless and shown to be."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from policies.contract import RESERVED_VARIABLE_PREFIXES, RESERVED_VARIABLES
from policies.decision import decide
from policies.grant import Denied, Grant
from policies.pod import Pod
from policies.quantity import whole
from tests.bypass.attempt import ANNOTATIONS, Attempt, forged
from tests.bypass.corpus import corpus
from tests.bypass.corpus_dra import forged_dra
from tests.bypass.corpus_mig import forged_device
from tests.bypass.corpus_whole import forged_whole
from tests.manifests.admission import BASE, policy, stored
from tests.policies.pods import GPU, VGPU, policies
from webhook.patch import operations
from webhook.preview.previewed import patch_pod

ATTEMPTS = corpus()
POLICY = policy(BASE)
NAMESPACE = {"metadata": {"annotations": ANNOTATIONS}}


def _names(attempts: list[Attempt]) -> list[str]:
    return [attempt.name for attempt in attempts]


def test_there_are_more_than_a_thousand_attempts_and_no_two_are_the_same() -> None:
    assert len(ATTEMPTS) > 1000
    assert max(Counter(_names(ATTEMPTS)).values()) == 1


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.by == "webhook"], ids=lambda one: one.name)
def test_the_webhook_denies(attempt: Attempt) -> None:
    decision = decide(msgspec.convert(attempt.pod, Pod), "team", policies(attempt.rules))
    assert isinstance(decision, Denied), decision
    assert decision.deny.code == attempt.code


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.by == "policy"], ids=lambda one: one.name)
def test_the_policy_in_the_api_server_denies(attempt: Attempt) -> None:
    assert not attempt.webhook_runs
    refusals = POLICY.denials(stored(attempt.pod), namespace=NAMESPACE)
    assert any(attempt.says in refusal for refusal in refusals), refusals


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.by == "harmless"], ids=lambda one: one.name)
def test_what_is_admitted_has_its_share_and_no_more(attempt: Attempt) -> None:
    decision = decide(msgspec.convert(attempt.pod, Pod), "team", policies(attempt.rules))
    assert isinstance(decision, Grant), decision
    admitted = patch_pod(attempt.pod, operations(msgspec.convert(attempt.pod, Pod), decision))
    assert POLICY.denials(stored(admitted), namespace=NAMESPACE) == []
    for one in admitted["spec"]["containers"]:
        _has_no_more_than_a_fifth(one)


def _has_no_more_than_a_fifth(container: dict[str, Any]) -> None:
    limits = container.get("resources", {}).get("limits", {})
    limit = whole(limits.get(VGPU, 0))
    assert limit in (0, 2)
    assert whole(limits.get(GPU, 0)) == 0
    environment = {one["name"]: one.get("value") for one in container.get("env", [])}
    if limit == 0:
        assert environment["NVIDIA_VISIBLE_DEVICES"] == "void"
        return
    assert not any(name in RESERVED_VARIABLES or name.startswith(RESERVED_VARIABLE_PREFIXES) for name in environment)
    numbers = [value for name, value in environment.items() if name.endswith("MEM_FRACTION") and value != ""]
    words = container.get("args", [])
    for place, word in enumerate(words):
        if word.replace("_", "-").lstrip("-").startswith("gpu-mem"):
            numbers.append(word.partition("=")[2] or words[place + 1])
    assert all(float(str(number)) <= 0.2 for number in numbers)


def test_without_the_policy_the_same_pods_would_pass() -> None:
    """The attempts on the policy are not refused for another reason: a pod as the webhook grants it is admitted."""
    assert POLICY.denials(stored(forged())) == []
    assert POLICY.denials(stored(forged_whole())) == []
    assert POLICY.denials(stored(forged_dra())) == []
    assert POLICY.denials(stored(forged_device())) == []
