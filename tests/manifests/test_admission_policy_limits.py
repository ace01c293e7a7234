"""Webhook and policy in the API server read the same number in a limit, however it is spelled."""

import pytest

from tests.manifests.admission import BASE, policy, stored
from tests.manifests.granted_pods import one
from tests.policies.pods import TIMESLICED, VGPU, limited, mutated, only_container, pod, policies

POLICY = policy(BASE)


@pytest.mark.parametrize(
    "written", ["1", "007", "+2", "2.", "2e0", "2E0", "2e00", "20e-1", "2000m", "1.500k", "1e3", "10000"]
)
def test_webhook_and_policy_agree_on_a_limit_in_every_spelling_that_the_api_server_keeps(written: str) -> None:
    by = policies("strategy: time-slicing\nshare: {maximum: '100', podMaximum: '100'}", "vgpusPerGpu: 100")
    on = stored(pod(None, limited(quantity=written, resource=TIMESLICED)))
    assert POLICY.denials(stored(mutated(on, by))) == []


def test_webhook_and_policy_agree_on_a_limit_with_a_binary_suffix() -> None:
    sixteen_gpus = stored(pod(None, limited(quantity="1Ki", resource=TIMESLICED)))
    by = policies("strategy: time-slicing\nshare: {maximum: '16', podMaximum: '16'}", "vgpusPerGpu: 64")
    assert POLICY.denials(stored(mutated(sixteen_gpus, by))) == []


@pytest.mark.parametrize(("limit", "requested"), [("2e0", "2"), ("2", "+2"), ("2.", "02")])
def test_request_and_limit_may_be_spelled_differently(limit: str, requested: str) -> None:
    on = one("one")
    only_container(on)["resources"] = {"limits": {VGPU: limit}, "requests": {VGPU: requested}}
    assert POLICY.denials(stored(on)) == []


@pytest.mark.parametrize("spelling", ["3e0", "+3", "3.", "20", "2k", "2e3", "2Ki", "2e1", "12", "022"])
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_another_number_is_denied_in_every_spelling(field: str, spelling: str) -> None:
    on = one("one")
    only_container(on)["resources"][field][VGPU] = spelling
    assert POLICY.denials(stored(on)) != []
