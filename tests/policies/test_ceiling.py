"""The most of one GPU that a container may hold, over all policies in force."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.ceiling import largest_vgpus
from policies.contract import SharingStrategy
from policies.decision import decide
from policies.errors import Problem
from policies.grant import Grant
from policies.pod import Pod
from policies.policy import broken_policy
from policies.policy_set import PolicySet
from tests.policies.pods import GPU, TIMESLICED, VGPU, container, decided, limited, pod, policies, untouched

OFFERS: tuple[SharingStrategy, ...] = get_args(SharingStrategy)
RESOURCES: dict[SharingStrategy, str] = {"mps": VGPU, "time-slicing": TIMESLICED, "whole": GPU}


def ceilings(by: PolicySet) -> dict[SharingStrategy, int]:
    return {offer: largest_vgpus(by, offer) for offer in OFFERS}


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        ("", 10),
        ("share: {maximum: '0.5'}", 5),
        ("share: {maximum: '0.25'}", 2),
        ("share: {maximum: '0.901'}", 9),
        ("share: {maximum: '0.25', rounding: exact}", 2),
        ("share: {maximum: '0.25', minimum: '0.21', rounding: exact}", 0),
        ("share: {maximum: '0.2', minimum: '0.2', rounding: exact}", 2),
        ("share: {podMaximum: '0.4'}", 4),
        ("share: {podMaximum: '0.31'}", 3),
        ("share: {maximum: '8', podMaximum: '8'}", 10),
        ("share: {maximum: '8', minimum: '2'}", 0),  # a process reaches one GPU through MPS
        ("share: {maximum: '8', podMaximum: '0.3'}", 3),
        ("share: {whole: gpus}", 10),  # a limit in vGPUs still gets them
        ("enabled: false", 0),
        ("strategy: time-slicing", 0),
        ("mode: warn\nshare: {maximum: '0.1'}", 10),
        ("mode: warn\nenabled: false", 10),
        ("mode: warn\nstrategy: time-slicing", 10),
    ],
)
def test_one_policy_allows_its_largest_share_in_vgpus(default: str, expected: int) -> None:
    assert largest_vgpus(policies(default), "mps") == expected


def test_each_strategy_has_the_ceiling_of_the_namespaces_that_use_it() -> None:
    by = policies(
        "enabled: false",
        a="enabled: true\nshare: {maximum: '0.2'}",
        b="enabled: true\nshare: {maximum: '0.35'}",
        c="enabled: true\nstrategy: time-slicing\nshare: {maximum: '0.7', whole: gpus}",
    )
    assert ceilings(by) == {"mps": 3, "time-slicing": 7, "whole": 0}


def test_a_namespace_on_trial_may_hold_all_of_a_gpu_of_every_kind() -> None:
    by = policies("enabled: false", trial="mode: warn\nstrategy: time-slicing\nshare: {maximum: '0.1'}")
    assert ceilings(by) == {"mps": 10, "time-slicing": 10, "whole": 1}
    untouched(pod(None, limited(quantity=10)), by, "trial")  # admitted as it came, and it holds them


def test_a_broken_policy_may_have_granted_all_of_a_gpu_of_every_kind() -> None:
    broken = broken_policy("team", Problem("team.yaml", 1, "", "invalid"))
    by = msgspec.structs.replace(policies("share: {maximum: '0.2'}"), namespaces={"team": broken})
    assert ceilings(by) == {"mps": 10, "time-slicing": 10, "whole": 1}


def test_whole_gpus_count_one() -> None:
    assert largest_vgpus(policies("share: {whole: gpus, maximum: '4'}"), "whole") == 1
    assert largest_vgpus(policies("share: {whole: gpus, maximum: '0.9'}"), "whole") == 0
    assert largest_vgpus(policies("share: {whole: gpus, podMaximum: '0.9'}"), "whole") == 0
    assert largest_vgpus(policies("share: {maximum: '4'}"), "whole") == 0


def test_an_exempt_namespace_raises_no_ceiling() -> None:
    small = "share: {maximum: '0.2'}"
    by = policies(small, "exemptNamespaces: [system]", system="share: {maximum: '1'}")
    assert largest_vgpus(by, "mps") == 2
    assert largest_vgpus(policies(small, system="share: {maximum: '1'}"), "mps") == 10


THOUSANDTHS = st.integers(1, 1000).map(lambda milli: f"{milli / 1000:.3f}")
SHARES = THOUSANDTHS | st.sampled_from(["0.1", "0.25", "1", "2", "3"])


@st.composite
def sections(draw: st.DrawFn) -> str:
    minimum, maximum = sorted((draw(SHARES), draw(SHARES)), key=float)
    pod_maximum = draw(st.none() | SHARES.filter(lambda share: float(share) >= float(minimum)))
    rules = [
        f"minimum: '{minimum}'",
        f"maximum: '{maximum}'",
        f"rounding: {draw(st.sampled_from(['up', 'exact']))}",
        f"whole: {draw(st.sampled_from(['vgpus', 'gpus']))}",
        f"podMaximum: {'null' if pod_maximum is None else repr(pod_maximum)}",
    ]
    strategy = draw(st.sampled_from(["mps", "time-slicing"]))
    enabled = draw(st.sampled_from(["true", "true", "false"]))
    return f"enabled: {enabled}\nstrategy: {strategy}\nshare: {{{', '.join(rules)}}}"


PER_GPU = st.sampled_from([1, 3, 7, 10, 60])


@st.composite
def asking(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["share", "limit", "both"]))
    if kind == "share":
        return pod(draw(SHARES))
    if kind == "both":
        second = {"container.gpu-share.dev/b": draw(SHARES)}
        return pod(draw(SHARES), container("a"), container("b"), annotations=second)
    return pod(
        None, limited(quantity=draw(st.integers(1, 300)), resource=draw(st.sampled_from([VGPU, TIMESLICED, GPU])))
    )


@settings(deadline=None, max_examples=200)
@given(sections(), sections(), PER_GPU, st.lists(asking(), min_size=1, max_size=8))
def test_no_grant_is_above_the_ceiling_on_one_gpu(
    default: str, own: str, per_gpu: int, asked: list[dict[str, Any]]
) -> None:
    by = policies(default, f"vgpusPerGpu: {per_gpu}", team=own)
    for on in asked:
        for namespace in ("team", "another"):
            decision = decide(msgspec.convert(on, Pod), namespace, by)
            if isinstance(decision, Grant) and decision.strategy != "partition":
                for one in decision.containers:
                    on_one_gpu = min(one.vgpus, decision.vgpus_per_gpu)
                    assert on_one_gpu <= largest_vgpus(by, decision.strategy)


@settings(deadline=None, max_examples=200)
@given(sections(), PER_GPU, st.sampled_from(OFFERS))
def test_the_ceiling_is_what_somebody_may_have_and_no_more(default: str, per_gpu: int, offer: SharingStrategy) -> None:
    by = policies(default, f"vgpusPerGpu: {per_gpu}")
    rules = by.default.policy.share
    largest = min(rules.maximum, rules.largest_pod)
    wanted = [pod(share) for share in {str(largest), str(rules.minimum)}]
    counts = range(1, 3 * per_gpu + 1)
    wanted += [pod(None, limited(quantity=count, resource=RESOURCES[offer])) for count in counts]
    held = [
        min(one.vgpus, decision.vgpus_per_gpu)
        for on in wanted
        if isinstance(decision := decided(on, by), Grant) and decision.strategy == offer
        for one in decision.containers
    ]
    assert largest_vgpus(by, offer) == max(held, default=0)
