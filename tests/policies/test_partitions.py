"""Strategy partition: a share becomes the smallest partition in hardware that holds it."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.decision import decide
from policies.grant import Denied, Grant
from policies.pod import Pod
from tests.manifests.admission import BASE, policy, stored
from tests.policies.partitioned import MEDIUM, SMALL, WHOLE, asked, by
from tests.policies.pods import VGPU, container, decided, limited, mutated, pod
from webhook.patch import operations

POLICY = policy(BASE)


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
        ("0.1", "share: {minimum: '0.2', rounding: exact}", "ShareBelowMinimum", 'Ask for "0.25" or "1"'),
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
