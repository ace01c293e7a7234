"""What is set for the smallest shares is within them, so that a second call changes nothing and denies nobody."""

import pytest

from policies.contract import MPS, TIME_SLICING, GrantStrategy
from policies.frameworks.budget import Budget, Wanted
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Memory, Spelling
from policies.frameworks.judge import number_in
from tests.policies.pods import container, environment, granted, mutated, only_container, pod, policies

FINE = "vgpusPerGpu: 100"
OWN = Memory(spellings=(Spelling(variable="A", value="{percentLeft}"), Spelling(variable="B", value="x={percent}")))
MEMORIES = [*(one.memory for one in BUILT_IN if one.memory is not None), OWN]


@pytest.mark.parametrize("strategy", [MPS, TIME_SLICING])
@pytest.mark.parametrize("share", [1, 5, 9, 10, 11, 12, 19, 20, 200, 995])
def test_what_is_set_is_within_the_share(share: int, strategy: GrantStrategy) -> None:
    for memory in MEMORIES:
        wanted = Wanted(memory, Budget(share=share, target=share, strategy=strategy))
        for spelling in memory.spellings:
            number = number_in(spelling, wanted.text(spelling))
            assert number is not None
            assert wanted.verdict(spelling, number) == "within", (spelling, number)


@pytest.mark.parametrize("on_conflict", ["deny", "lower"])
def test_what_mxnet_is_told_of_a_share_of_one_percent_is_admitted_again(on_conflict: str) -> None:
    by = policies(f"strategy: time-slicing\nframeworks: {{onConflict: {on_conflict}}}", cluster=FINE)
    first = mutated(pod("0.01", container(image="nvcr.io/nvidia/mxnet:24.06-py3")), by)
    assert environment(only_container(first))["MXNET_GPU_MEM_POOL_RESERVE"] == "99"
    granted(first, by)
    assert mutated(first, by) == first


def test_a_reserve_of_all_counts_as_none_in_the_smallest_share_too() -> None:
    by = policies("strategy: time-slicing", cluster=FINE)
    on = pod("0.01", container(env=[{"name": "MXNET_GPU_MEM_POOL_RESERVE", "value": "100"}]))
    assert environment(only_container(mutated(on, by)))["MXNET_GPU_MEM_POOL_RESERVE"] == "99"
