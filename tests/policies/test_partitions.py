"""Strategy partition: a share becomes the smallest partition in hardware that holds it."""

import json
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.contract import PARTITION_VARIABLES
from policies.decision import decide
from policies.ephemeral import decide_on_added
from policies.errors import PolicyError
from policies.grant import Added, Denied, Grant
from policies.pod import Pod
from policies.policy_set import PolicySet
from tests.manifests.admission import BASE, policy, stored
from tests.policies.pods import VGPU, container, decided, limited, mutated, pod, policies
from webhook.patch import hiding, operations
from webhook.preview.command import patch_pod

CLUSTER = """
partitions:
  h100:
  - {share: "1", resource: nvidia.com/gpu}
  - {share: "0.125", resource: nvidia.com/mig-1g.10gb}
  - {share: "0.25", resource: nvidia.com/mig-2g.20gb}
  mi300x: [{share: "0.125", resource: amd.com/cpx_nps4}, {share: "1", resource: amd.com/gpu}]
  gaudi: [{share: "1", resource: habana.ai/gaudi}]
  small: [{share: "0.125", resource: nvidia.com/mig-1g.10gb}]
"""
SMALL, MEDIUM, WHOLE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb", "nvidia.com/gpu"
POLICY = policy(BASE)


def by(name: str = "h100", rules: str = "share: {maximum: '8', podMaximum: '8'}") -> PolicySet:
    return policies(f"strategy: partition\npartition: {name}\n{rules}", CLUSTER)


def asked(decision: Any) -> dict[str, tuple[str, int]]:
    assert isinstance(decision, Grant), decision
    return {one.slot.name: (one.resource, one.quantity) for one in decision.containers}


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        ("0.001", (SMALL, 1)),
        ("0.125", (SMALL, 1)),
        ("0.126", (MEDIUM, 1)),
        ("25%", (MEDIUM, 1)),
        ("0.3", (WHOLE, 1)),
        ("1", (WHOLE, 1)),
        ("8", (WHOLE, 8)),
    ],
)
def test_a_share_becomes_the_smallest_partition_that_holds_it(share: str, expected: tuple[str, int]) -> None:
    assert asked(decided(pod(share), by())) == {"main": expected}


def test_a_share_that_is_no_partition_is_warned_of_with_both_numbers() -> None:
    grant = decided(pod("0.2"), by())
    assert isinstance(grant, Grant)
    assert grant.warnings == (f'"main": 0.2 of a GPU gets 1 {MEDIUM}, 0.25 of a GPU',)
    exact = decided(pod("0.25"), by())
    assert isinstance(exact, Grant)
    assert exact.warnings == ()


@pytest.mark.parametrize(
    ("share", "rules", "code", "words"),
    [
        ("0.2", "share: {rounding: exact}", "NotWholeVgpus", '"0.125" or "0.25" or "1"'),
        ("0.2", "share: {maximum: '0.2'}", "ShareAboveMaximum", 'Ask for "0.125"'),
        ("0.2", "share: {minimum: '0.15', maximum: '0.2'}", "ShareAboveMaximum", "No partition fits"),
        ("0.1", "share: {minimum: '0.2'}", "ShareBelowMinimum", '"0.2" or more'),
        ("2", "share: {podMaximum: '1', maximum: '4'}", "PodShareAboveMaximum", "at most 1 per pod"),
    ],
)
def test_the_bounds_of_a_policy_hold_for_the_partition(share: str, rules: str, code: str, words: str) -> None:
    decision = decided(pod(share), by(rules=rules))
    assert isinstance(decision, Denied)
    assert decision.deny.code == code
    assert words in decision.message


@pytest.mark.parametrize("share", ["0.2", "1", "2"])
def test_a_share_that_no_partition_holds_is_denied_with_the_choices(share: str) -> None:
    decision = decided(pod(share), by("small"))
    assert isinstance(decision, Denied)
    assert decision.deny.code == "ShareAboveMaximum"
    assert 'no partition of "small" holds that' in decision.message
    assert 'Ask for "0.125"' in decision.message


def test_a_pod_is_held_to_the_sum_of_its_partitions_of_each_size() -> None:
    # The scheduler adds up each resource on its own, and the larger of init and app containers counts for each.
    on = pod(
        None, limited("a", 1, SMALL), annotations={"container.gpu-share.dev/i": "0.25"}, initContainers=[container("i")]
    )
    assert isinstance(decided(on, by(rules="share: {podMaximum: '0.375'}")), Grant)
    denied = decided(on, by(rules="share: {podMaximum: '0.374'}"))
    assert isinstance(denied, Denied)
    assert denied.deny.code == "PodShareAboveMaximum"


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_limit_of_a_partition_is_a_request_in_a_pod_with_a_share() -> None:
    decision = decided(pod("0.1", container("a"), limited("b", 1, MEDIUM)), by())
    assert asked(decision) == {"a": (SMALL, 1), "b": (MEDIUM, 1)}


def test_a_limit_alone_is_the_maker_s_business_as_before() -> None:
    assert not isinstance(decided(pod(None, limited("a", 1, MEDIUM)), by()), Grant | Denied)


@pytest.mark.parametrize(
    ("on", "code"),
    [
        (pod("0.1", limited("main", 1, MEDIUM)), "ConflictingRequest"),
        (pod("0.25", limited("main", 2, SMALL)), "ShareMalformed"),
        (pod("0.1", container("a"), limited("b", 2, SMALL)), "ShareMalformed"),
        (pod("0.1", container("a"), limited("b", 1, "nvidia.com/mig-3g.40gb")), "ConflictingRequest"),
        (pod("0.1", container("a"), limited("b", 1, "amd.com/gpu")), "ConflictingRequest"),
        (pod("0.1", container("a"), limited("b", 1, VGPU)), "ConflictingRequest"),
        (pod("0.1", container("a"), limited("b", "0.5", WHOLE)), "ShareMalformed"),
        (pod(None, limited("b", 2, VGPU)), "ConflictingRequest"),
    ],
)
def test_a_limit_that_disagrees_is_denied(on: dict[str, Any], code: str) -> None:
    decision = decided(on, by())
    assert isinstance(decision, Denied), decision
    assert decision.deny.code == code


# --- what comes with it -----------------------------------------------------------------------------------------------


def test_nothing_of_mps_is_attached() -> None:
    made = mutated(pod("0.2"), by(rules="mps: {attach: pod}"))
    assert "hostIPC" not in made["spec"]
    assert "volumes" not in made["spec"]
    assert "CUDA_MPS" not in json.dumps(made)


@pytest.mark.parametrize(("value", "stays"), [("0.95", True), ("0.2", True), ("1.5", False)])
def test_a_memory_setting_is_of_the_partition(value: str, stays: bool) -> None:  # noqa: FBT001 - what is expected
    serving = {"image": "vllm/vllm-openai:v0.33.0", "args": [f"--gpu-memory-utilization={value}"]}
    made = mutated(pod("0.1", {"name": "main", **serving}), by(rules="memory: {headroom: '0.02'}"))
    assert (made["spec"]["containers"][0]["args"] == serving["args"]) is stays


def test_the_variable_of_the_share_is_written_out_since_nobody_sets_it() -> None:
    on = pod("0.1", container(args=["--fraction=$(GPU_SHARE_FRACTION)", "$(GPU_SHARE_MEMORY_MIB)"]))
    grant = decided(on, by())
    assert isinstance(grant, Grant)
    assert any("with strategy: partition" in one for one in grant.warnings)
    made = mutated(on, by())
    assert made["spec"]["containers"][0]["args"][0] == "--fraction=1"


def test_no_memory_setting_is_needed() -> None:
    made = mutated(pod("0.1", {"name": "main", "image": "vllm/vllm-openai:v0.33.0"}), by())
    assert "args" not in made["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100", {"NVIDIA_VISIBLE_DEVICES": "void"}),
        ("mi300x", {"NVIDIA_VISIBLE_DEVICES": "void", "AMD_VISIBLE_DEVICES": "none"}),
        ("gaudi", {"NVIDIA_VISIBLE_DEVICES": "void", "HABANA_VISIBLE_DEVICES": "none"}),
    ],
)
def test_a_container_without_a_share_sees_no_device_of_the_maker(name: str, expected: dict[str, str]) -> None:
    made = mutated(pod("0.1", container("a"), container("b"), initContainers=[container("i")]), by(name))
    for hidden in (made["spec"]["containers"][1], made["spec"]["initContainers"][0]):
        assert {one["name"]: one["value"] for one in hidden["env"]} == expected
    assert "env" not in made["spec"]["containers"][0]


@pytest.mark.parametrize("variable", sorted(PARTITION_VARIABLES | {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}))
@pytest.mark.parametrize("of", [0, 1])
def test_a_variable_that_chooses_devices_is_denied_in_every_container(variable: str, of: int) -> None:
    containers = [container("a"), container("b")]
    containers[of]["env"] = [{"name": variable, "value": "all"}]
    decision = decided(pod("0.1", *containers), by("mi300x"))
    assert isinstance(decision, Denied)
    assert decision.deny.code == "ReservedEnvironment"
    shares = decided(pod("0.1", *containers))
    assert isinstance(shares, Grant) is (variable in PARTITION_VARIABLES)  # which say nothing under MPS


@pytest.mark.parametrize(
    ("prefix", "denied"), [("AMD_", False), ("HABANA", False), ("HABANA_VIS", True), ("ROCR_VISIBLE_DEVICES", True)]
)
def test_a_prefix_that_makes_such_variables_is_denied_by_both(prefix: str, denied: bool) -> None:  # noqa: FBT001
    source = {"prefix": prefix, "configMapRef": {"name": "x"}}
    on = pod("0.1", container("a", envFrom=[source]))
    made = decided(on, by("mi300x", "environment: {envFrom: allow}"))
    assert isinstance(made, Denied) is denied
    granted = mutated(pod("0.1", container("a")), by("mi300x"))
    granted["spec"]["containers"][0]["envFrom"] = [source]
    assert bool(POLICY.denials(stored(granted))) is denied


def test_an_ephemeral_container_sees_no_device_of_any_maker() -> None:
    before = mutated(pod("0.1"), by("mi300x"))
    after = {**before, "spec": {**before["spec"], "ephemeralContainers": [container("debug")]}}
    old, new = (msgspec.convert(one, Pod) for one in (before, after))
    added = decide_on_added(new, old, "team", by("mi300x"))
    assert isinstance(added, Added)
    made = patch_pod(after, hiding(added))
    values = {one["name"]: one["value"] for one in made["spec"]["ephemeralContainers"][0]["env"]}
    assert values == {"NVIDIA_VISIBLE_DEVICES": "void", "AMD_VISIBLE_DEVICES": "none", "HABANA_VISIBLE_DEVICES": "none"}


def test_the_grant_says_what_was_granted() -> None:
    made = mutated(pod("0.2"), by())
    assert json.loads(made["metadata"]["annotations"]["gpu-share.dev/grant"]) == {
        "policy": "_default",
        "strategy": "partition",
        "partition": "h100",
        "containers": {"main": {"resource": MEDIUM, "count": 1, "share": "0.2"}},
    }


# --- agreement --------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["h100", "mi300x", "gaudi", "small"]),
    st.lists(st.integers(1, 1000) | st.sampled_from([2000, 3000]) | st.none(), min_size=1, max_size=4),
    st.lists(st.integers(1, 1000) | st.none(), max_size=2),
)
@settings(max_examples=150, deadline=None)
def test_whatever_is_granted_holds_the_share_and_is_admitted_by_the_api_server(
    name: str, apps: list[int | None], inits: list[int | None]
) -> None:
    shares = {f"a{i}": milli for i, milli in enumerate(apps)} | {f"i{i}": milli for i, milli in enumerate(inits)}
    on = pod(
        None,
        *(container(f"a{i}") for i in range(len(apps))),
        annotations={f"container.gpu-share.dev/{one}": f"{milli / 1000:.3f}" for one, milli in shares.items() if milli},
        initContainers=[container(f"i{i}") for i in range(len(inits))],
    )
    policies_in_force = by(name)
    decision = decided(on, policies_in_force)
    if not isinstance(decision, Grant):
        return
    sizes = {one.resource: one.share for one in policies_in_force.cluster.partitions[name]}
    for one in decision.containers:
        held = Fraction(sizes[one.resource] * one.quantity, 1000)
        wanted = Fraction(shares[one.slot.name] or 0, 1000)
        assert held >= wanted
        smaller = [size for size in sizes.values() if wanted <= Fraction(size, 1000) < held]
        assert smaller == []
    made = mutated(on, policies_in_force)
    assert POLICY.denials(stored(made)) == []
    again = msgspec.convert(made, Pod)
    second = decide(again, "team", policies_in_force)
    assert isinstance(second, Grant)
    assert operations(again, second) == []


# --- the files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("default", "cluster", "told"),
    [
        ("strategy: partition", CLUSTER, "_default.yaml:1: strategy: partition needs the name of partitions"),
        (
            "strategy: partition\npartition: x",
            CLUSTER,
            '_default.yaml:2: partition: _cluster.yaml has no partitions of the name "x"',
        ),
        ("strategy: partition\npartition: x", "", "there are none"),
        ("", "partitions: {a: []}", "_cluster.yaml:1: partitions.a: expected a list with at least 1 item"),
        ("", "partitions: {A: [{share: '1', resource: a.b/c}]}", "lower-case letters"),
        ("", "partitions: {a: [{share: 1, resource: a.b/c}]}", "expected a share in quotes"),
        ("", "partitions: {a: [{share: '2', resource: a.b/c}]}", "above one GPU"),
        ("", "partitions: {a: [{share: '1', resource: c}]}", "the extended resource of a maker's plugin"),
        (
            "",
            "partitions: {a: [{share: '1', resource: x.kubernetes.io/c}]}",
            "the extended resource of a maker's plugin",
        ),
        ("", "partitions: {a: [{share: '1', resource: gpu-share.dev/vgpu}]}", "a resource of gpu-share itself"),
        ("", "partitions: {a: [{share: '1', resource: gpu-share.dev/share-100m}]}", "a resource of gpu-share itself"),
        (
            "",
            "partitions: {a: [{share: '1', resource: a.b/c}, {share: '1', resource: a.b/d}]}",
            "has the share 1 twice",
        ),
        ("", "partitions: {a: [{share: '1', resource: a.b/c}, {share: '0.5', resource: a.b/c}]}", "a.b/c twice"),
        ("", "partitions: {a: [{share: '1'}]}", "partitions.a[0].resource: is missing"),
    ],
)
def test_a_mistake_in_the_files_is_a_problem_with_its_place(default: str, cluster: str, told: str) -> None:
    with pytest.raises(PolicyError) as raised:
        policies(default, cluster)
    assert told in str(raised.value.problems[0]), raised.value.problems


def test_a_namespace_picks_other_partitions_than_the_default() -> None:
    made = policies("strategy: partition\npartition: h100", CLUSTER, amd="partition: mi300x")
    assert asked(decided(pod("0.1"), made, "amd")) == {"main": ("amd.com/cpx_nps4", 1)}


def test_partitions_that_have_gone_from_the_cluster_file_deny_and_grant_nothing() -> None:
    made = by()
    without = msgspec.structs.replace(made, cluster=msgspec.structs.replace(made.cluster, partitions={}))
    decision = decided(pod("0.1"), without)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "SharingDisabled"
