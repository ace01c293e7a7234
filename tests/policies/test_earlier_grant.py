"""A pod that was granted under one policy and is decided on under another is told of that, and stays denied."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.denial import Deny
from policies.grant import Denied
from policies.policy_set import PolicySet
from tests.policies.pods import VGPU, container, decided, denied, limited, mutated, pod, policies
from tests.policies.test_as_written import CHANGES
from tests.webhook.test_patch import patch, pods

GRANT = "gpu-share.dev/grant"
CREATE_AGAIN = ". The policy has changed since its grant: create the pod again, from a manifest without that grant."
PIPES = policies("", "mps: {pipeDirectory: /var/pipes}")
OF_A_MODEL = "nodes: [{device: t4, vgpusPerGpu: 4}]"
EVERY = CHANGES | {
    "model": policies("devices: [t4]", OF_A_MODEL),
    "model by dra": policies("devices: [t4]\nallocation: dra", OF_A_MODEL),
}


@pytest.mark.parametrize(
    ("share", "then", "now", "code", "what"),
    [
        ("0.2", "plain", "twenty", "ConflictingRequest", "4 vGPUs, but its limit gpu-share.dev/vgpu says 2 vGPUs"),
        ("0.2", "plain", "sliced", "ConflictingRequest", "but this namespace's strategy allocates"),
        ("0.2", "plain", "node", "ConflictingRequest", "The pod has hostIPC"),
        ("0.2", "plain", "pipes", "ConflictingRequest", '"/tmp/nvidia-mps", which hostPaths of the policy'),
        ("0.2", "dra", "plain", "ConflictingRequest", "gpu-share.dev/share-200m"),
        ("0.25", "fine dra", "dra", "ShareMalformed", "a size that no GPU is divided into"),
        ("1", "gpus", "plain", "ConflictingRequest", "but whole GPUs are allocated as vGPUs here"),
        ("0.2", "partitions", "plain", "ConflictingRequest", "nvidia.com/mig-1g.10gb"),
        ("0.2", "plain", "partitions", "ConflictingRequest", "strategy allocates partitions"),
    ],
)  # fmt: skip
def test_a_pod_of_an_earlier_policy_is_told_to_be_created_again(
    share: str, then: str, now: str, code: str, what: str
) -> None:
    by = CHANGES | {"pipes": PIPES, "fine dra": policies("allocation: dra", "vgpusPerGpu: 20")}
    told = denied(mutated(pod(share), by[then]), by[now])
    assert (told.code, told.ending) == (code, CREATE_AGAIN)
    assert what in told.what


def test_the_owner_of_a_limit_is_told_what_to_ask_for() -> None:
    on = mutated(pod(None, limited()), CHANGES["plain"])
    assert denied(on, CHANGES["sliced"]).ending.endswith("Ask for gpu-share.dev/vgpu-timesliced, or by annotation.")


def test_what_a_new_policy_denies_of_every_pod_is_not_solved_by_creating_it_again() -> None:
    by = policies("mps: {attach: node}\nshare: {maximum: '0.1'}")
    on = mutated(pod("0.2"), CHANGES["plain"])
    assert denied(on, by).code == "ShareAboveMaximum"
    assert denied(on, by).ending.endswith('Ask for "0.1" or less.')


def reasons(on: dict[str, Any], by: PolicySet) -> tuple[Deny, ...]:
    decision = decided(on, by)
    return decision.reasons if isinstance(decision, Denied) else ()


@given(pods(), st.sampled_from(sorted(CHANGES)), st.sampled_from(sorted(CHANGES)))
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_a_grant_changes_the_words_of_a_denial_alone(one: dict[str, Any], then: str, now: str) -> None:
    after, grant = patch(one, CHANGES[then])
    if grant is None:
        return
    bare = copy.deepcopy(after)
    del bare["metadata"]["annotations"][GRANT]
    with_grant, without = reasons(after, CHANGES[now]), reasons(bare, CHANGES[now])
    assert [(deny.code, deny.what) for deny in with_grant] == [(deny.code, deny.what) for deny in without]
    assert with_grant[1:] == without[1:]


@given(pods(), st.sampled_from(sorted(EVERY)))
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_under_the_same_policy_nothing_is_said_of_a_change(one: dict[str, Any], by: str) -> None:
    after, grant = patch(one, EVERY[by])
    if grant is None:
        return
    after["spec"]["nodeName"] = "node-1"  # as another webhook may do
    (told,) = reasons(after, EVERY[by])
    assert told.ending.startswith(". Remove nodeName")


@pytest.mark.parametrize("share", ["", "x", "0.3", "9999999"])
@pytest.mark.parametrize("strategy", ["mps", "time-slicing", "whole", "partition"])
def test_a_grant_by_hand_is_denied_as_without_it(share: str, strategy: str) -> None:
    grant = {"strategy": strategy, "resource": VGPU, "containers": {"main": {"share": share, "vgpus": 3, "of": 10}}}
    on = pod("0.2", limited(quantity="3"), annotations={GRANT: json.dumps(grant)})
    for by in CHANGES.values():
        assert [one.code for one in reasons(on, by)] == [
            one.code for one in reasons(pod("0.2", limited(quantity="3")), by)
        ]


def test_a_grant_that_the_limits_do_not_bear_out_says_nothing() -> None:
    on = mutated(pod("0.2", container()), CHANGES["plain"])
    on["spec"]["containers"][0]["resources"] = {"limits": {VGPU: "3"}}
    assert denied(on, CHANGES["twenty"]).ending == ". Remove the limit, or make the two agree."
