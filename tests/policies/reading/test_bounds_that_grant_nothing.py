"""What `policy check` says of bounds: no warning where shares are granted up to them, one where none is."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policies.grant import Grant
from policies.policy_set import PolicySet
from policies.reading.oversights import oversights
from tests.policies.partitioned import CLUSTER
from tests.policies.pods import GPU, TIMESLICED, VGPU, decided, limited, pod, policies

PARTITIONED = "strategy: partition\npartition: h100\n"
FINE = "vgpusPerGpu: 48" + CLUSTER


def told(of: PolicySet) -> list[str]:
    return [one.told for one in oversights(of, ["_default.yaml"], None)]


@pytest.mark.parametrize(
    "rules",
    [
        "share: {minimum: '0.1', maximum: '0.125'}",
        "share: {podMaximum: '0.375'}",
        "share: {minimum: '0.125', maximum: '0.125'}",
        "share: {minimum: '2', maximum: '2'}",
        "allocation: dra",
    ],
)
def test_partitions_are_no_number_of_vgpus(rules: str) -> None:
    assert told(policies(PARTITIONED + rules, FINE)) == []


@pytest.mark.parametrize(
    ("default", "cluster", "warned"),
    [
        (
            PARTITIONED + "share: {minimum: '0.3', maximum: '0.5'}",
            CLUSTER,
            (
                "no partition is from share.minimum 0.3 (_default.yaml:3) to share.maximum 0.5 (_default.yaml:3): "
                'widen share, so that it has "0.125" or "0.25" or "1"'
            ),
        ),
        (
            "strategy: partition\npartition: small\nshare: {minimum: '1', maximum: '2'}",
            CLUSTER,
            (
                "no partition is from share.minimum 1 (_default.yaml:3) to share.maximum 2 (_default.yaml:3): "
                'widen share, so that it has "0.125"'
            ),
        ),
        (
            "share: {minimum: '0.201', maximum: '0.299'}",
            "",
            (
                "no number of 10 vGPUs is from share.minimum 0.201 (_default.yaml:1) to share.maximum 0.299 "
                "(_default.yaml:1): widen share"
            ),
        ),
        (
            "share: {minimum: '0.201', podMaximum: '0.299'}",
            "",
            (
                "no number of 10 vGPUs is from share.minimum 0.201 (_default.yaml:1) to share.podMaximum 0.299 "
                "(_default.yaml:1): widen share"
            ),
        ),
        (
            "strategy: time-slicing\nshare: {minimum: '0.95', maximum: '0.99'}\ndevices: [t4, gpu]",
            "nodes: [{device: t4, vgpusPerGpu: 4}]",
            (
                "every share of the device t4 is denied: no number of 4 vGPUs is from share.minimum 0.95 "
                "(_default.yaml:2) to share.maximum 0.99 (_default.yaml:2): widen share"
            ),
        ),
    ],
)
def test_bounds_that_no_share_lies_between_deny_every_share(default: str, cluster: str, warned: str) -> None:
    assert any(
        one.startswith("share: every share") and one.endswith(warned) for one in told(policies(default, cluster))
    )


def test_bounds_of_a_policy_that_is_not_enabled_deny_nothing_more() -> None:
    assert not any(
        "every share" in one for one in told(policies("enabled: false\nshare: {minimum: '1', maximum: '1'}"))
    )


def test_a_grid_that_is_too_fine_for_dra_denies_the_shares_of_its_device_alone() -> None:
    by = policies("allocation: dra\ndevices: [t4, gpu]", "vgpusPerGpu: 48\nnodes: [{device: t4, vgpusPerGpu: 4}]")
    (warning,) = [one for one in told(by) if one.startswith("allocation: ")]
    assert warning.startswith("allocation: every share of a GPU is denied: vgpusPerGpu 48 needs ")


SHARES = st.sampled_from(["0.001", "0.1", "0.125", "0.2", "0.25", "0.3", "0.5", "0.51", "0.95", "1", "2", "3"])
KINDS = {
    "mps": VGPU,
    "time-slicing": TIMESLICED,
    "mps\nshare: {whole: gpus}": GPU,
    "partition\npartition: h100": "",
    "partition\npartition: small": "",
}


def asking(resource: str, per_gpu: int) -> Iterator[dict[str, Any]]:
    """Pods with every share that there can be."""
    yield from (pod(share) for share in ("0.125", "0.25", "1", "2", "3"))
    if resource:
        yield from (pod(None, limited(quantity=str(count), resource=resource)) for count in range(1, 3 * per_gpu + 1))


@given(SHARES, SHARES, st.sampled_from(sorted(KINDS)), st.sampled_from([1, 3, 7, 10]))
def test_every_share_is_said_to_be_denied_where_no_pod_is_granted_one(
    minimum: str, maximum: str, strategy: str, per_gpu: int
) -> None:
    assume(float(minimum) <= float(maximum))
    name, _, more = strategy.partition("\n")
    whole = ", whole: gpus" if "whole" in more else ""
    rules = "" if "whole" in more else more
    bounds = f"share: {{minimum: '{minimum}', maximum: '{maximum}', podMaximum: '8'{whole}}}"
    by = policies(f"strategy: {name}\n{rules}\n{bounds}", f"vgpusPerGpu: {per_gpu}{CLUSTER}")
    is_granted = any(
        isinstance(decided(one, by), Grant)
        for resource in {KINDS[strategy], VGPU if name == "mps" else KINDS[strategy]}
        for one in asking(resource, per_gpu)
    )
    is_warned = any("every share" in one or "no share is granted" in one for one in told(by))
    assert is_warned != is_granted


@pytest.mark.parametrize(("bound", "per_gpu"), [("0.143", 21), ("0.334", 3), ("0.667", 3), ("0.021", 48)])
def test_a_bound_that_is_a_number_of_vgpus_up_to_a_thousandth_is_no_oversight(bound: str, per_gpu: int) -> None:
    assert told(policies(f"share: {{maximum: '{bound}'}}", f"vgpusPerGpu: {per_gpu}")) == []


def test_a_bound_a_thousandth_below_a_number_of_vgpus_grants_one_less() -> None:
    (warning,) = told(policies("share: {maximum: '0.142'}", "vgpusPerGpu: 21"))
    assert "at most 2 can be granted" in warning


def annotated(*, milli: range) -> Iterator[dict[str, Any]]:
    """Pods with every share up to one GPU that a decimal can say."""
    return (pod(f"{one / 1000:.3f}") for one in milli)


@given(
    st.sampled_from([1, 3, 6, 7, 9, 10, 11, 12, 21, 48]),
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.sampled_from(["", "strategy: time-slicing\n", "allocation: dra\n"]),
)
@settings(deadline=None, max_examples=60)
def test_where_no_annotation_is_exact_that_is_said_and_only_a_limit_is_granted(
    per_gpu: int, one: int, other: int, rules: str
) -> None:
    least, most = sorted((one, other))
    assume(per_gpu < 48 or "dra" not in rules)  # for which it is too fine
    bounds = f"{{minimum: '{least / 1000:.3f}', maximum: '{most / 1000:.3f}', rounding: exact}}"
    by = policies(f"{rules}share: {bounds}", f"vgpusPerGpu: {per_gpu}")
    resource = TIMESLICED if "time" in rules else VGPU
    by_limit = [pod(None, limited(quantity=f"{count}", resource=resource)) for count in range(1, per_gpu + 1)]
    is_granted = [
        any(isinstance(decided(one, by), Grant) for one in pods)
        for pods in (annotated(milli=range(least, most + 1)), by_limit)
    ]
    is_said = any("by annotation is denied" in one for one in told(by))
    assert is_said == (is_granted == [False, True])


@pytest.mark.parametrize(
    ("default", "cluster", "who", "decimals"),
    [
        (
            "share: {maximum: '0.7', rounding: exact}",
            "vgpusPerGpu: 7",
            "every share",
            "from share.minimum 0.001 (built-in default) to share.maximum 0.7 (_default.yaml:1) is a whole number of 7",
        ),
        (
            "share: {minimum: '0.3', podMaximum: '0.4', rounding: exact}\ndevices: [t4, gpu]",
            "nodes: [{device: t4, vgpusPerGpu: 3}]",
            "every share of the device t4",
            "from share.minimum 0.3 (_default.yaml:1) to share.podMaximum 0.4 (_default.yaml:1) is a whole number of 3",
        ),
    ],
)
def test_a_warning_that_no_decimal_is_exact_says_what_to_do(
    default: str, cluster: str, who: str, decimals: str
) -> None:
    (warning,) = [one for one in told(policies(default, cluster)) if one.startswith("share: ")]
    assert warning == (
        f"share: {who} by annotation is denied: share.rounding is exact (_default.yaml:1), and no decimal {decimals} "
        "vGPUs: write share: {rounding: up}, or ask for vGPUs by a limit"
    )


def test_the_file_that_says_exact_is_told_of_bounds_in_another_one() -> None:
    by = policies("share: {maximum: '0.572'}", "vgpusPerGpu: 7", team="\nshare: {rounding: exact}")
    (warning,) = [one for one in oversights(by, ["_default.yaml", "team.yaml"], None) if one.field == "share"]
    assert (warning.file, warning.line) == ("team.yaml", 2)


@pytest.mark.parametrize(
    ("maximum", "per_gpu", "most"),
    [
        ("0.7", 7, "at most 4 can be granted by a limit, and none by annotation, as share.rounding"),
        ("0.7", 48, "at most 33 can be granted by a limit, and 30 by annotation, as share.rounding"),
        ("0.45", 8, "at most 3 can be granted; use whole vGPUs"),
    ],
)
def test_under_exact_a_bound_may_grant_less_by_annotation(maximum: str, per_gpu: int, most: str) -> None:
    by = policies(f"share: {{maximum: '{maximum}', rounding: exact}}", f"vgpusPerGpu: {per_gpu}")
    (warning,) = [one for one in told(by) if one.startswith("share.maximum")]
    assert most in warning
