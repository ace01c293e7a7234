from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plugin.pod_resources.tenancy import Tenancy
from plugin.simulated.device_manager import Holding
from tests.plugin.mps.tenants import RESOURCE, Claimed, held, kubelet

A, B, NEW = held("team/a", "GPU-1", vgpus=1), Claimed("team/b", "gpu-1-300m-0"), held("team/new", "GPU-2", vgpus=1)


class Node:
    """A node whose kubelet is asked again and again."""

    def __init__(self, socket: Path) -> None:
        self.now_seconds = 100.0
        self.socket = socket
        self.tenancy = Tenancy(socket, lambda: [RESOURCE], clock=lambda: self.now_seconds)

    def named(self, *, after_seconds: float = 0) -> list[str] | None:
        self.now_seconds += after_seconds
        tenants = self.tenancy.read()
        return None if tenants is None else sorted(tenant.pod for tenant in tenants)

    @contextmanager
    def restarted(self) -> Iterator[list[Holding | Claimed]]:
        """Have a kubelet start after one that has named A and B, and give what it lists: nothing yet."""
        with kubelet(self.socket, A, B):
            assert self.named() == ["a", "b"]
        with kubelet(self.socket) as listed:
            yield listed


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "kubelet.sock")


def test_the_first_kubelet_is_believed_at_once(node: Node) -> None:
    with kubelet(node.socket) as listed:
        assert node.named() == []
        listed.append(A)
        assert node.named() == ["a"]


def test_until_a_kubelet_that_has_started_has_had_time_to_name_its_pods_the_word_of_the_one_before_counts(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    with node.restarted() as listed:
        for _ in range(3):
            assert node.named(after_seconds=9) is None
            assert [one.pod for one in node.tenancy.read_or_known() or ()] == ["a", "b"]
        listed.append(NEW)
        assert node.named(after_seconds=12) == ["new"], "a and b have ended meanwhile"
        assert [one.pod for one in node.tenancy.read_or_known() or ()] == ["new"]
    reasons = {vars(record)["reason"].partition(": ")[2] for record in caplog.records}
    assert reasons == {"the kubelet has just started: it may not know all of its pods yet"}


def test_as_long_as_it_comes_to_know_pods_of_before_it_may_lack_some(node: Node) -> None:
    with node.restarted() as listed:
        assert node.named() is None
        listed.append(A)
        assert node.named(after_seconds=29) is None
        listed.append(B)
        assert node.named(after_seconds=29) is None
        assert node.named(after_seconds=29) is None
        assert node.named(after_seconds=1) == ["a", "b"]


def test_new_pods_keep_nobody_from_believing_it(node: Node) -> None:
    with node.restarted() as listed:
        listed.extend((A, B))
        assert node.named() is None
        listed.append(NEW)
        assert node.named(after_seconds=29) is None
        assert node.named(after_seconds=1) == ["a", "b", "new"]


def test_a_pod_that_comes_again_and_again_keeps_nobody_from_believing_it_either(node: Node) -> None:
    with node.restarted() as listed:
        listed.append(A)
        assert node.named() is None
        for _ in range(2):
            listed.clear()
            assert node.named(after_seconds=7) is None
            listed.append(A)
            assert node.named(after_seconds=7) is None
        assert node.named(after_seconds=2) == ["a"]
