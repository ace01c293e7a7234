"""Each GPU is with the kubelet or with the scheduler, and stays there while containers hold something of it."""

import logging
from collections.abc import Collection

import pytest

from plugin.allocators import Allocators
from policies.contract import Allocation
from tests.plugin.dra.gpus import shared

FIRST, SECOND = (one.gpu.uuid for one in shared(2))


class Node:
    """Two GPUs of which the first is the scheduler's, by its number."""

    def __init__(self) -> None:
        self.held: dict[Allocation, Collection[str]] = {"device-plugin": (), "dra": ()}
        self.of: dict[Allocation, list[str]] = {}
        self.allocators = Allocators(
            lambda gpu: "dra" if gpu.index == 0 else "device-plugin",
            held=lambda: self.held,
            to_device_plugin=lambda gpus: self.of.update({"device-plugin": [one.gpu.uuid for one in gpus]}),
            to_dra=lambda gpus: self.of.update({"dra": [one.gpu.uuid for one in gpus]}),
        )

    def publish(self, **held: Collection[str]) -> dict[Allocation, list[str]]:
        self.held = {"device-plugin": held.get("plugin", ()), "dra": held.get("dra", ())}
        self.allocators.publish(shared(2))
        for one in shared(2):
            assert self.allocators.by_plugin(one.gpu) == (one.gpu.uuid in self.of["device-plugin"])
        return self.of


def test_who_allocates_a_gpu_is_said_by_its_number() -> None:
    assert Node().publish(plugin=[SECOND], dra=[FIRST]) == {"dra": [FIRST], "device-plugin": [SECOND]}


def test_a_gpu_of_which_a_container_holds_something_stays_until_it_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    with caplog.at_level(logging.WARNING):
        assert node.publish(plugin=[FIRST]) == {"dra": [], "device-plugin": [FIRST, SECOND]}
        assert node.publish(plugin=[FIRST]) == {"dra": [], "device-plugin": [FIRST, SECOND]}
    assert [one.message for one in caplog.records] == ["a GPU stays with who has allocated it"]
    assert node.publish() == {"dra": [FIRST], "device-plugin": [SECOND]}


def test_so_does_one_that_a_claim_holds() -> None:
    node = Node()
    assert node.publish(dra=[FIRST, SECOND]) == {"dra": [FIRST, SECOND], "device-plugin": []}
    assert node.publish(dra=[FIRST]) == {"dra": [FIRST], "device-plugin": [SECOND]}


def test_where_both_hold_something_the_number_says_it() -> None:
    assert Node().publish(plugin=[FIRST], dra=[FIRST]) == {"dra": [FIRST], "device-plugin": [SECOND]}
