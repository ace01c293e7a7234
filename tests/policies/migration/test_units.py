from math import lcm

from hypothesis import given
from hypothesis import strategies as st

from policies.migration.units import unit, vgpus_per_gpu
from tests.policies.pods import decided, pod, policies

REPLICAS = st.integers(2, 100)


@given(st.lists(st.integers(2, 10**9), min_size=1, max_size=6))
def test_the_number_is_one_that_a_policy_may_say(replicas: list[int]) -> None:
    assert 1 <= vgpus_per_gpu(replicas) <= 100


@given(st.lists(REPLICAS, min_size=1, max_size=6))
def test_a_common_multiple_up_to_100_makes_every_replica_exact(replicas: list[int]) -> None:
    number = vgpus_per_gpu(replicas)
    if lcm(*replicas) <= 100:
        assert number == lcm(*replicas)
        assert all(unit(one, number).is_exact for one in replicas)
    else:
        assert not all(unit(one, number).is_exact for one in replicas)


@given(st.lists(REPLICAS, min_size=1, max_size=6))
def test_a_replica_never_becomes_more_than_it_was(replicas: list[int]) -> None:
    number = vgpus_per_gpu(replicas)
    for one in replicas:
        made = unit(one, number)
        assert made.vgpus * one <= number or made.vgpus == 1


@given(st.integers(1, 100), REPLICAS)
def test_the_share_that_is_written_takes_as_many_vgpus_as_the_replica_becomes(number: int, replicas: int) -> None:
    made = unit(replicas, number)
    assert made.share.vgpus(number) == made.vgpus
    assert made.share * number <= made.vgpus * 1000


def test_without_replicas_it_is_the_default() -> None:
    assert vgpus_per_gpu([]) == 10


def test_the_share_of_a_third_is_one_of_three_vgpus() -> None:
    share = unit(3, 3).share
    grant = decided(pod(str(share)), policies(cluster="vgpusPerGpu: 3"))
    assert grant.containers[0].vgpus == 1  # type: ignore[union-attr]
