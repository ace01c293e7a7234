from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.gpu import Gpu
from plugin.mps.client_limits import ceiling_of, daemon_limits, next_ceiling
from plugin.shares.allocation import Allocation
from plugin.shares.limits import limits
from plugin.shares.strategy import Mps

H200 = Gpu(uuid="GPU-a", index=0, minor=0, model="H200", memory_bytes=143771 << 20, numa_node=None)


@given(
    st.integers(1, 1000).flatmap(lambda per_gpu: st.tuples(st.integers(1, per_gpu), st.just(per_gpu))),
    st.integers(1, 1 << 50),
)
def test_a_tenant_is_held_to_its_own_share_and_never_to_less_by_the_daemon(
    vgpus: tuple[int, int], memory_bytes: int
) -> None:
    held, per_gpu = vgpus
    gpu = Gpu(uuid="GPU-a", index=0, minor=0, model="any", memory_bytes=memory_bytes, numa_node=None)
    tenant = limits(Allocation(gpus=(gpu,), vgpus=held, vgpus_per_gpu=per_gpu), Mps("/p")).environment
    at_its_share = ceiling_of(gpu, Fraction(held, per_gpu))
    assert tenant["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == str(at_its_share.thread_percentage)
    assert tenant["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={at_its_share.memory_mib}M"
    higher = ceiling_of(gpu, Fraction(1))
    assert higher.thread_percentage >= at_its_share.thread_percentage
    assert higher.memory_mib >= at_its_share.memory_mib


@pytest.mark.parametrize(
    ("before", "allowed", "held", "then"),
    [
        (10, 5, 2, 5),  # policies say
        (10, 2, 5, 5),  # a tenant holds more: from before the policy changed, or from an exempt namespace
        (8, 5, 2, 5),  # it falls with the policies
        (10, 5, None, 10),  # who is there is not known: anyone may be
        (5, 2, None, 5),  # it does not fall then
        (5, 7, None, 7),  # it may rise
        (10, 0, 0, 1),  # nobody may have any
        (10, 30, 0, 10),  # no more than the GPU
    ],
)
def test_the_ceiling_is_the_largest_share_that_anyone_may_have_or_has(
    before: int, allowed: int, held: int | None, then: int
) -> None:
    of_held = None if held is None else Fraction(held, 10)
    ceiling = next_ceiling(Fraction(before, 10), allowed=Fraction(allowed, 10), held=of_held, least=Fraction(1, 10))
    assert ceiling == Fraction(then, 10)


def test_defaults_are_set_by_ordinal_and_running_servers_are_told_themselves() -> None:
    made = daemon_limits(ceiling_of(H200, Fraction(2, 10)), (42,))
    assert {one.question: one.command for one in made} == {
        "get_default_active_thread_percentage": "set_default_active_thread_percentage 20",
        "get_default_device_pinned_mem_limit 0": "set_default_device_pinned_mem_limit 0 28728M",
        "get_active_thread_percentage 42": "set_active_thread_percentage 42 20",
        "get_device_pinned_mem_limit 42 0": "set_device_pinned_mem_limit 42 0 28728M",
    }
