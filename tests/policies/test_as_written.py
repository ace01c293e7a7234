"""What a grant added is taken off again, and what its owner wrote is not."""

import copy
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.as_written import as_written
from policies.decision import decide
from policies.grant import Decision, Denied, Grant
from policies.pod import Pod
from policies.policy_set import PolicySet
from policies.reasons import reasons
from tests.bypass.test_honest_pods import HONEST, honest_pod
from tests.policies.pods import TIMESLICED, VGPU, container, limited, pod, policies
from tests.webhook.test_patch import PIPES, PLACED, RESERVED, patch, pods

PARTITIONS = (
    "partitions: {h100: [{share: '0.2', resource: nvidia.com/mig-1g.10gb}, {share: '1', resource: nvidia.com/gpu}]}"
)
WHOLE = "share: {whole: gpus, maximum: '8', podMaximum: '8'}"
CHANGES = {
    "plain": policies(),
    "twenty": policies("", "vgpusPerGpu: 20"),
    "sevenths": policies("share: {rounding: exact}", "vgpusPerGpu: 7"),
    "sliced": policies("strategy: time-slicing\nframeworks: {onConflict: deny}"),
    "node": policies("mps: {attach: node}\nframeworks: {onConflict: deny}"),
    "renamed": policies("", "resourceNames: {mps: example.com/vgpu}"),
    "granted": policies("memory: {basis: granted}\nframeworks: {onConflict: deny}"),
    "headroom": policies("memory: {headroom: '0.02'}"),
    "granted headroom": policies("memory: {headroom: '0.01', basis: granted}\nframeworks: {onConflict: deny}"),
    "gpus": policies(WHOLE),
    "dra": policies("allocation: dra"),
    "dra-gpus": policies(f"allocation: dra\n{WHOLE}"),
    "partitions": policies("strategy: partition\npartition: h100", PARTITIONS),
    "placed": policies(PLACED),
    "placed elsewhere": policies(PLACED.replace("shared", "other").replace("nvidia", "n").replace("packer", "p")),
}


def written(after: dict[str, Any], by: PolicySet) -> dict[str, Any]:
    before = copy.deepcopy(after)
    made = as_written(after, msgspec.convert(after, Pod), "team", by)
    assert after == before
    return made


def decided(on: dict[str, Any], by: PolicySet) -> Decision:
    return decide(msgspec.convert(on, Pod), "team", by)


def honest(on: dict[str, Any]) -> dict[str, Any]:
    """The pod without what no owner writes for whom the webhook does, and without what it removes for good."""
    spec = on["spec"]
    for field in ("hostIPC", "volumes", "nodeSelector", "runtimeClassName", "schedulerName"):
        spec.pop(field, None)
    for one in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for field in ("resources", "volumeMounts"):
            one.pop(field, None)
        one["env"] = [variable for variable in one.get("env") or () if variable["name"] not in RESERVED]
    return on


@given(pods(), st.sampled_from(sorted(CHANGES)), st.sampled_from(sorted(CHANGES)))
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_a_granted_pod_is_decided_on_as_it_was_written(one: dict[str, Any], then: str, now: str) -> None:
    before = honest(one)
    after, grant = patch(before, CHANGES[then])
    made = written(after, CHANGES[now])
    if grant is None:
        assert made is after
        return
    assert [*reasons(decided(made, CHANGES[now]))] == [*reasons(decided(before, CHANGES[now]))]
    if then == now:
        assert patch(made, CHANGES[now])[0] == after


def told(grant: Grant) -> bool:
    """Whether the grant set something for a framework, and took nothing of the owner's for good."""
    gone = any(one.removed or one.unmounted or one.literals for one in grant.containers)
    return not gone and any(one.advice.changes for one in grant.containers)


@cache
def told_pods(then: str) -> dict[str, dict[str, Any]]:
    """Return the honest pods to which a grant by these rules told something, as it patched them."""
    patched = {name: patch(honest_pod(one, {}), CHANGES[then]) for name, one in HONEST.items()}
    return {name: after for name, (after, grant) in patched.items() if grant and told(grant)}


@cache
def expected(name: str, now: str) -> list[str]:
    return [*reasons(decided(honest_pod(HONEST[name], {}), CHANGES[now]))]


@pytest.mark.parametrize("then", ["plain", "sliced", "granted", "headroom", "granted headroom", "dra"])
@pytest.mark.parametrize(
    "now", ["plain", "twenty", "sliced", "granted", "partitions", "headroom", "granted headroom", "dra"]
)
def test_what_a_framework_was_told_is_taken_off_as_well(then: str, now: str) -> None:
    pods = told_pods(then)
    for name, after in pods.items():
        made = decided(written(after, CHANGES[now]), CHANGES[now])
        assert [*reasons(made)] == expected(name, now), name
    assert len(pods) > 10


def test_the_pipes_as_an_earlier_version_mounted_them_are_taken_off() -> None:
    after, _ = patch(pod("0.2"), CHANGES["plain"])
    del after["spec"]["containers"][0]["volumeMounts"][0]["readOnly"]
    made = written(after, CHANGES["plain"])["spec"]
    assert "volumes" not in made
    assert "volumeMounts" not in made["containers"][0]


def test_a_setting_that_is_joined_to_the_owners_is_taken_out_again() -> None:
    own = {"name": "PYTORCH_ALLOC_CONF", "value": "expandable_segments:True"}
    before = pod("0.2", container(image="pytorch/pytorch:2.10.0", env=[own]))
    after, _ = patch(before, CHANGES["plain"])
    assert after["spec"]["containers"][0]["env"] != [own]
    assert written(after, CHANGES["plain"])["spec"]["containers"][0]["env"] == [own]


@pytest.mark.parametrize("first", [[], [{"name": "XLA_CLIENT_MEM_FRACTION", "value": ""}]])
def test_a_variable_that_was_set_empty_is_taken_off_as_the_api_server_keeps_it(first: list[dict[str, str]]) -> None:
    own = [*first, {"name": "A", "value": "1"}]
    after, _ = patch(pod("0.2", container(image="nvidia/jax", env=own)), CHANGES["plain"])
    env = after["spec"]["containers"][0]["env"]
    assert ("XLA_CLIENT_MEM_FRACTION", "") in [(one["name"], one["value"]) for one in env]
    for one in env:
        if not one["value"]:
            del one["value"]
    kept = [{key: value for key, value in one.items() if value} for one in own]
    assert written(after, CHANGES["plain"])["spec"]["containers"][0]["env"] == kept


def test_a_constant_of_another_framework_is_its_owners() -> None:
    own = {"name": "TF_FORCE_GPU_ALLOW_GROWTH", "value": "true"}
    before = pod("0.2", container(image="vllm/vllm-openai:v0.11.0", args=["--model", "m"], env=[own]))
    after, _ = patch(before, CHANGES["headroom"])
    (made,) = written(after, CHANGES["plain"])["spec"]["containers"]
    assert (made["args"], made["env"]) == (["--model", "m"], [own])


def test_a_setting_of_the_owner_that_no_grant_makes_stays() -> None:
    args = ["--model", "m", "--gpu-memory-utilization=0.2"]
    after, _ = patch(pod("0.2", container(args=args)), CHANGES["sliced"])
    assert written(after, CHANGES["sliced"])["spec"]["containers"][0]["args"] == args


def test_a_setting_of_the_owner_stays_where_frameworks_are_not_recognised() -> None:
    undetected = policies("frameworks: {detect: false}")
    args = ["--model", "m", "--gpu-memory-utilization=0.2"]
    before = pod("0.2", container(image="vllm/vllm-openai:v0.11.0", args=args))
    after, _ = patch(before, undetected)
    made = written(after, undetected)
    assert made["spec"]["containers"][0]["args"] == args
    assert [*reasons(decided(made, undetected))] == [*reasons(decided(before, undetected))]
    before["metadata"]["annotations"]["gpu-share.dev/framework"] = "vllm"
    before["spec"]["containers"][0]["args"] = args[:-1]
    after, _ = patch(before, undetected)
    assert after["spec"]["containers"][0]["args"] == args
    assert written(after, undetected)["spec"]["containers"][0]["args"] == args[:-1]


def test_a_container_that_asks_by_its_limit_keeps_it_and_loses_what_else_was_added() -> None:
    before = honest(pod(None)) | {"spec": {"containers": [limited()]}}
    after, _ = patch(before, CHANGES["plain"])
    made = written(after, CHANGES["sliced"])
    amounts = {VGPU: "2"}
    assert made["spec"] == {"containers": [limited() | {"resources": {"limits": amounts, "requests": amounts}}]}
    decision = decided(made, CHANGES["sliced"])
    assert isinstance(decision, Denied)
    assert f"allocates {TIMESLICED}" in decision.deny.message
    assert len(decision.reasons) == 1


def test_the_directory_of_the_pipes_stays_where_another_container_mounts_it() -> None:
    after, _ = patch(pod("0.2", container(), container("other")), CHANGES["plain"])
    mount = {"name": "nvidia-mps", "mountPath": PIPES}
    after["spec"]["containers"][1]["volumeMounts"] = [mount]
    made = written(after, CHANGES["plain"])["spec"]
    assert [one.get("volumeMounts") for one in made["containers"]] == [None, [mount]]
    assert [one["name"] for one in made["volumes"]] == ["nvidia-mps"]
    assert "hostIPC" not in made


def test_a_share_stays_with_its_container_whatever_was_put_before_it() -> None:
    after, _ = patch(pod("0.2"), CHANGES["plain"])
    after["spec"]["containers"].insert(0, container("proxy"))
    decision = decided(written(after, CHANGES["twenty"]), CHANGES["twenty"])
    assert isinstance(decision, Grant)
    assert [one.slot.name for one in decision.containers] == ["main"]


@pytest.mark.parametrize(
    "grant",
    [
        "",
        "{",
        "[" * 9999,
        '{"strategy":"mps","resource":"gpu-share.dev/vgpu","containers":{"main":{"share":"0.2","vgpus":3,"of":10}}}',
        '{"strategy":"mps","resource":"gpu-share.dev/vgpu","containers":{"other":{"share":"0.2","vgpus":2,"of":10}}}',
        '{"strategy":"mps","resource":"gpu-share.dev/gpu","containers":{"main":{"share":"0.2","vgpus":2,"of":10}}}',
        '{"strategy":"mps","containers":{"main":{"share":"0.2","resource":"gpu-share.dev/share-200m"}}}',
    ],
)
def test_a_grant_that_the_limits_do_not_bear_out_takes_nothing_off(grant: str) -> None:
    one = pod("0.2", limited(), annotations={"gpu-share.dev/grant": grant}, hostIPC=True)
    assert written(one, CHANGES["plain"]) is one
