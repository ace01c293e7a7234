"""The kubelet is not asked who holds what while it gives something to a container."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from time import sleep

import pytest

from plugin.device_plugin import tenant_watch
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.tenant_watch import TenantWatch
from plugin.gpus.gpu import Pool
from plugin.pod_resources.tenants import Tenant
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.walk import NAME
from tests.plugin.waiting import wait_until


class Node:
    """A kubelet that counts how often it is asked, and the devices that it gives away."""

    def __init__(self, directory: Path) -> None:
        self.asked = 0
        self.held = HeldVgpus(Holdings(self._list, kubelet=directory / "kubelet.sock"))
        (self.gpu,) = simulated_gpus("1xL4")
        self.devices = Devices(Pool(gpus=(self.gpu,), vgpus_per_gpu=10), resource=NAME)
        self.held.follow(self.devices, are_divided=True)

    def prefers(self) -> None:
        self.held.preferred(self.devices, "pack", available=sorted(self.devices.seen), must_include=[], size=1)

    def allocates(self) -> None:
        self.held.allocate([min(self.devices.seen)], self.devices, "pack")

    def _list(self) -> tuple[Tenant, ...]:
        self.asked += 1
        return ()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    node = Node(tmp_path)
    monkeypatch.setattr(tenant_watch, "_PERIOD_SECONDS", 0.001)
    watch = TenantWatch(node.held)
    watch.look()
    thread = Thread(target=watch.run)
    thread.start()
    yield node
    watch.stop()
    thread.join()


@pytest.mark.parametrize("call", [Node.prefers, Node.allocates])
def test_for_a_moment_after_each_call_it_is_not_asked(node: Node, call: Callable[[Node], None]) -> None:
    wait_until(lambda: node.asked > 3)
    call(node)
    sleep(0.02)  # what was under way is over
    before = node.asked
    sleep(0.15)
    assert node.asked == before
    wait_until(lambda: node.asked > before)


def test_where_one_call_comes_after_the_other_it_is_asked_all_the_same(node: Node) -> None:
    ended = Event()

    def call() -> None:
        while not ended.wait(0.01):
            node.prefers()

    calls = Thread(target=call)
    calls.start()
    try:
        before = node.asked
        wait_until(lambda: node.asked > before + 1)
        assert calls.is_alive()
    finally:
        ended.set()
        calls.join()


def test_a_container_that_it_has_asked_about_is_allocated_to_without_a_question_to_it(tmp_path: Path) -> None:
    node = Node(tmp_path)
    init = node.held.allocate(first := [f"{node.gpu.uuid}::0"], node.devices, "pack")
    before = node.asked
    chosen = node.held.preferred(node.devices, "pack", available=sorted(node.devices.seen), must_include=first, size=2)
    assert node.asked == before + 1
    app = node.held.allocate(chosen, node.devices, "pack")
    assert (init.vgpus, app.vgpus, node.asked) == (1, 2, before + 1)
