"""The webhook grants nothing that the policy in the API server then refuses."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.decision import decide
from policies.grant import Grant
from policies.pod import Pod
from tests.manifests.admission import BASE, policy, stored
from tests.webhook.test_patch import POLICIES, pods
from webhook.patch import operations
from webhook.preview.previewed import patch_pod

POLICY = policy(BASE)


@settings(deadline=None, max_examples=200)
@given(pods(), st.sampled_from(["plain", "node", "sliced", "placed", "gpus"]))
def test_what_the_webhook_grants_the_policy_lets_pass(on: dict[str, Any], name: str) -> None:
    pod = msgspec.convert(on, Pod)
    decision = decide(pod, "team", POLICIES[name])
    if isinstance(decision, Grant):
        assert POLICY.denials(stored(patch_pod(on, operations(pod, decision)))) == []
