"""A GPU serves so many clients under MPS: what is divided into more parts is an error, under MPS alone."""

import pytest

from tests.policies.pods import GPU, TIMESLICED, denied, granted, limited, pod, policies
from tests.policies.test_nodes import problems_of

MANY = "vgpusPerGpu: 61"
SENTENCE = "vgpusPerGpu 61 is more than the 60 clients that MPS has on one GPU: at most 60 under mps"


@pytest.mark.parametrize("nodes", ["[{offer: mps}]", "[{model: '*T4*', offer: time-slicing}, {offer: mps}]"])
def test_a_cluster_that_shares_gpus_by_mps_cannot_divide_them_into_more_parts_than_it_serves(nodes: str) -> None:
    (problem,) = problems_of(f"{MANY}\nnodes: {nodes}")
    assert f"{problem.field} {problem.message}".startswith(SENTENCE)
    assert problems_of(f"vgpusPerGpu: 60\nnodes: {nodes}") == []


def test_time_slicing_has_no_such_limit() -> None:
    assert problems_of("vgpusPerGpu: 100\nnodes: [{offer: time-slicing}]") == []
    by = policies("strategy: time-slicing", "vgpusPerGpu: 100")
    assert granted(pod("0.01"), by).containers[0].vgpus == 1
    assert granted(pod(None, limited(quantity=7, resource=TIMESLICED)), by).containers[0].vgpus == 7


@pytest.mark.parametrize("on", [pod("0.5"), pod("1"), pod(None, limited())])
def test_a_pod_under_mps_is_denied_where_no_node_could_ever_serve_it(on: dict[str, object]) -> None:
    deny = denied(on, policies("\nstrategy: mps", MANY))
    assert deny.code == "SharingDisabled"
    assert SENTENCE in deny.message
    assert "(_default.yaml:2)" in deny.message
    granted(on, policies("strategy: mps", "vgpusPerGpu: 60"))


def test_whole_gpus_are_given_whatever_the_others_are_divided_into() -> None:
    by = policies("share: {whole: gpus}", MANY)
    assert granted(pod("1"), by).resource == GPU
    assert denied(pod("0.5"), by).code == "SharingDisabled"
