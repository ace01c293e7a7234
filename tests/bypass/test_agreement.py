"""The webhook grants nothing that the policy in the API server then denies, or it itself when it is called again."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.decision import decide
from policies.errors import PolicyError
from policies.grant import Grant
from policies.pod import Pod
from tests.manifests.admission import BASE, policy, stored
from tests.policies.pods import mutated, pod, policies
from tests.webhook.test_patch import POLICIES, pods
from webhook.patch import operations
from webhook.preview.previewed import patch_pod

POLICY = policy(BASE)
VARIABLES = (
    *("A", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES"),
    *("XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_CLIENT_MEM_FRACTION", "CUPY_GPU_MEMORY_LIMIT", "MXNET_GPU_MEM_POOL_RESERVE"),
)
VALUES = ("", "1", "compute", " utility,video", "compute,graphics", "all", "$(A)", "platform", "90%", "--tf-g 0.9")
CONSTANTS = st.fixed_dictionaries(
    {"variable": st.sampled_from(VARIABLES), "value": st.sampled_from(VALUES)},
    optional={"strategies": st.lists(st.sampled_from(["mps", "time-slicing"]), unique=True)},
)


@settings(deadline=None, max_examples=200)
@given(pods(), st.sampled_from(["plain", "node", "sliced", "placed", "gpus"]))
def test_what_the_webhook_grants_the_policy_lets_pass(on: dict[str, Any], name: str) -> None:
    pod = msgspec.convert(on, Pod)
    decision = decide(pod, "team", POLICIES[name])
    if isinstance(decision, Grant):
        assert POLICY.denials(stored(patch_pod(on, operations(pod, decision)))) == []


@settings(deadline=None, max_examples=100)
@given(st.lists(CONSTANTS, max_size=2), st.sampled_from(["mps", "time-slicing"]))
def test_what_a_framework_of_the_cluster_file_adds_is_admitted(constants: list[dict[str, Any]], strategy: str) -> None:
    by_cluster = [{"name": "x", "source": "s", "constants": constants}]
    try:
        by = policies(f"strategy: {strategy}", json.dumps({"frameworks": by_cluster}))
    except PolicyError:
        return  # which is how it is not added
    made = mutated(pod("0.2", annotations={"gpu-share.dev/framework": "x"}), by)
    assert POLICY.denials(stored(made)) == []
    assert mutated(made, by) == made
