"""A pod with several mistakes is told all of them at once."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.denial import LONGEST_MESSAGE, MOST_REASONS, Deny
from policies.grant import Denied
from policies.policy_set import PolicySet
from tests.policies.pods import GPU, VGPU, container, decided, denied, granted, limited, pod, policies, untouched
from tests.webhook.reviews import answer, call
from tests.webhook.test_patch import POLICIES, pods

STRICT = policies('share: {maximum: "0.5"}\nplacement: {nodeSelector: {gpu: shared}, runtimeClassName: nvidia}\n')
MANY = pod(
    "0.8",
    container(
        securityContext={"privileged": True, "capabilities": {"add": ["SYS_ADMIN", "ALL"]}},
        env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "CUDA_VISIBLE_DEVICES", "value": "0"}],
        volumeMounts=[{"name": "claim", "mountPath": "/dev/shm"}, {"name": "claim", "mountPath": "/x/../y"}],
        resources={"limits": {"nvidia.com/gpu": 1}},
    ),
    container("second", env=[{"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/x"}]),
    hostPID=True,
    hostUsers=False,
    nodeName="node-1",
    runtimeClassName="runc",
    nodeSelector={"gpu": "mine"},
    volumes=[
        {"name": "claim", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "devices", "hostPath": {"path": "/dev"}},
        {"name": "sockets", "hostPath": {"path": "/run"}},
    ],
    annotations={"container.gpu-share.dev/nobody": "0.1", "framework.gpu-share.dev/nobody": "vllm"},
)


def reasons(on: dict[str, Any], by: PolicySet | None = None) -> tuple[Deny, ...]:
    decision = decided(on, by)
    assert isinstance(decision, Denied), decision
    assert all(len(one.message) <= LONGEST_MESSAGE for one in decision.reasons)
    assert len(set(decision.reasons)) == len(decision.reasons)
    return decision.reasons


def test_every_reason_is_found_and_none_hides_another() -> None:
    found = [(one.code, one.what) for one in reasons(MANY, STRICT)]
    for code, words in (
        ("ShareAboveMaximum", "0.8"),
        ("UnknownContainer", "container.gpu-share.dev/nobody"),
        ("UnknownContainer", "framework.gpu-share.dev/nobody"),
        ("PrivilegedContainer", "hostPID"),
        ("ConflictingRequest", '"node-1"'),
        ("PrivilegedContainer", "privileged"),
        ("PrivilegedContainer", "SYS_ADMIN"),
        ("PrivilegedContainer", '"ALL"'),
        ("ReservedEnvironment", "NVIDIA_VISIBLE_DEVICES"),
        ("ReservedEnvironment", "CUDA_VISIBLE_DEVICES"),
        ("ReservedEnvironment", '"second" sets "CUDA_MPS_PIPE_DIRECTORY"'),
        ("ConflictingRequest", "nvidia.com/gpu"),
        ("ConflictingRequest", "/dev/shm"),
        ("ConflictingRequest", "a path with .."),
        ("ConflictingRequest", '"devices"'),
        ("ConflictingRequest", '"sockets"'),
        ("ConflictingRequest", "runtimeClassName"),
        ("ConflictingRequest", "nodeSelector"),
        ("HostUsersConflict", "hostUsers"),
    ):
        assert [what for one, what in found if one == code and words in what], (code, words)
    assert len(found) == 19


@pytest.mark.parametrize(
    ("on", "codes"),
    [
        (pod("0,2", container(), annotations={"container.gpu-share.dev/x": "a"}), ["ShareMalformed"] * 2),
        (pod("0,2", hostPID=True), ["ShareMalformed", "PrivilegedContainer"]),
        (pod("0.8", limited(quantity=3)), ["ConflictingRequest", "ShareAboveMaximum"]),
        (pod(None, limited(quantity="0.5"), limited("b", "x")), ["ShareMalformed"] * 2),
        (pod("0.2", annotations={"gpu-share.dev/share": "a"}, hostPID=True), ["ShareMalformed", "PrivilegedContainer"]),
        (pod("0.3", limited(quantity=1, resource=GPU), limited("b", 2, GPU)), ["ConflictingRequest"] * 2),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_read_hides_nothing_else(on: dict[str, Any], codes: list[str]) -> None:
    assert [one.code for one in reasons(on, STRICT)] == codes


def test_a_limit_of_both_kinds_hides_nothing_else() -> None:
    on = pod("0.3", limited(quantity=1, resource=GPU), hostPID=True)
    by = policies("share: {whole: gpus}")
    assert [one.code for one in reasons(on, by)] == ["ConflictingRequest", "PrivilegedContainer"]


def test_where_sharing_is_disabled_nothing_else_matters() -> None:
    assert [one.code for one in reasons(MANY, policies("enabled: false"))] == ["SharingDisabled"]


def test_the_same_reason_is_said_once() -> None:
    resources = {"limits": {VGPU: "0.5"}, "requests": {VGPU: "0.5"}}
    assert len(reasons(pod(None, container(resources=resources)))) == 1


def test_the_webhook_says_the_first_and_how_many_more_there_are() -> None:
    status = answer(call(MANY), STRICT)["status"]
    first = reasons(MANY, STRICT)[0]
    assert status["reason"] == first.code
    assert status["message"] == f"{first.message} And 18 more reasons."
    two = pod("0.2", hostPID=True, hostUsers=False)
    assert answer(call(two))["status"]["message"].endswith("Remove hostPID. And 1 more reason.")
    assert "more reason" not in answer(call(pod("0.2", hostPID=True)))["status"]["message"]


def test_the_message_stays_within_its_length_and_keeps_the_fix() -> None:
    name = "n" * 63
    env = [{"name": f"CUDA_MPS_{number}{'X' * 200}", "value": ""} for number in range(12)]
    on = pod("0.2", container(name, env=env), annotations={f"container.gpu-share.dev/{'y' * 200}": "9" * 300})
    message = answer(call(on))["status"]["message"]
    assert len(message) <= LONGEST_MESSAGE
    assert message.endswith(". And 12 more reasons.")
    assert 'Write a share such as "0.2"' in message


def test_with_mode_warn_the_warning_counts_them_too() -> None:
    on = pod("0.2", hostPID=True, hostUsers=False)
    (warning,) = untouched(on, policies("mode: warn")).warnings
    assert warning.endswith("And 1 more reason.")


def test_a_pod_with_endless_mistakes_costs_little() -> None:
    env = [{"name": f"CUDA_MPS_{number}", "value": ""} for number in range(4_000)]
    on = pod("0.2", container(env=env))
    assert len(reasons(on)) == MOST_REASONS
    few = pod("0.2", container(env=[{**one, "name": f"A_{one['name']}"} for one in env]))
    assert _seconds(on, denied) < 3 * _seconds(few, granted) + 0.1


def _seconds(on: dict[str, Any], decides: Any) -> float:
    start = time.perf_counter()
    decides(on)
    return time.perf_counter() - start


@given(pods(), st.sampled_from(sorted(POLICIES)))
@settings(deadline=None, max_examples=300)
def test_a_denied_pod_has_a_reason_and_no_reason_twice(on: dict[str, Any], name: str) -> None:
    decision = decided(on, POLICIES[name])
    if isinstance(decision, Denied):
        assert decision.reasons
        assert len(set(decision.reasons)) == len(decision.reasons)
        assert decision.deny is decision.reasons[0]
