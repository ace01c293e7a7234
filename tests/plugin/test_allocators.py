"""Each GPU is with the kubelet or with the scheduler, and stays there while containers hold something of it."""

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import pytest

from plugin.allocators import Allocators, DraPlaces, held_of
from plugin.dra.checkpoint import FILE, Checkpoint, Prepared, write_checkpoint
from plugin.errors import SocketError
from plugin.shares.strategy import SharedGpu
from policies.contract import DRIVER, Allocation
from tests.plugin.dra.gpus import shared
from tests.plugin.dra.prepared import device, unseen

FIRST, SECOND = (one.gpu.uuid for one in shared(2))


class Node:
    """Two GPUs of which the first is the scheduler's, by its number."""

    def __init__(self) -> None:
        self.held: dict[Allocation, Collection[str]] = {"device-plugin": (), "dra": ()}
        self.of: dict[Allocation, list[str]] = {"device-plugin": [], "dra": []}
        self.on_withdrawal: Callable[[], None] = lambda: None
        self.on_news: Callable[[], None] = lambda: None
        self.allocators = Allocators(
            lambda gpu: "dra" if gpu.index == 0 else "device-plugin",
            held=self.held.copy,
            withdraw={"device-plugin": partial(self.take, "device-plugin"), "dra": partial(self.take, "dra")},
            to_device_plugin=partial(self.tell, "device-plugin"),
            to_dra=partial(self.tell, "dra"),
        )

    def take(self, allocation: Allocation, gpus: Collection[str]) -> Collection[str]:
        self.on_withdrawal()
        free = {*gpus} - {*self.held[allocation]}
        self.of[allocation] = [uuid for uuid in self.of[allocation] if uuid not in free]
        return free

    def tell(self, allocation: Allocation, gpus: Sequence[SharedGpu]) -> None:
        self.of[allocation] = [one.gpu.uuid for one in gpus]
        assert set(self.of["dra"]).isdisjoint(self.of["device-plugin"])
        self.on_news()

    def publish(self, **held: Collection[str]) -> dict[Allocation, list[str]]:
        self.held |= {"device-plugin": held.get("plugin", ()), "dra": held.get("dra", ())}
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


def test_without_a_driver_what_claims_held_counts_as_the_file_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / DRIVER
    own.mkdir()
    claims = {"uid": Prepared(namespace="ns", name="claim", boot_id="earlier", devices=(device(300, FIRST),))}
    places = DraPlaces(
        node="node",
        default="device-plugin",
        plugins_dir=tmp_path,
        registrar_dir=tmp_path,
        service_account=tmp_path,
        has_processes=unseen,
    )
    write_checkpoint(own, Checkpoint(claims=claims))
    held = held_of(lambda: {SECOND}, None, places)
    assert held() == {"device-plugin": {SECOND}, "dra": {FIRST}}
    (own / FILE).write_text("{")
    assert [held()["dra"], held()["dra"]] == [{FIRST}, {FIRST}]
    assert [one.message for one in caplog.records] == ["what claims held before counts still"]
    (own / FILE).unlink()
    assert held() == {"device-plugin": {SECOND}, "dra": set()}


def test_where_both_hold_something_the_number_says_it() -> None:
    assert Node().publish(plugin=[FIRST], dra=[FIRST]) == {"dra": [FIRST], "device-plugin": [SECOND]}


def test_what_is_allocated_of_a_gpu_until_it_is_taken_back_keeps_it_there() -> None:
    node = Node()
    node.publish(plugin=[FIRST])

    def allocate() -> None:
        node.held["device-plugin"] = [FIRST]

    node.on_withdrawal = allocate
    assert node.publish() == {"dra": [], "device-plugin": [FIRST, SECOND]}
    node.on_withdrawal = lambda: None
    assert node.publish() == {"dra": [FIRST], "device-plugin": [SECOND]}


def test_a_gpu_of_which_the_kubelet_names_a_container_later_goes_to_the_kubelet() -> None:
    node = Node()
    assert node.publish() == {"dra": [FIRST], "device-plugin": [SECOND]}
    assert node.publish(plugin=[FIRST]) == {"dra": [], "device-plugin": [FIRST, SECOND]}


def test_a_gpu_that_was_taken_from_one_is_the_others_though_telling_of_it_failed() -> None:
    node = Node()
    node.publish(dra=[SECOND])

    def fail() -> None:
        if SECOND not in node.of["dra"]:
            raise SocketError("too long")

    node.on_news = fail
    with pytest.raises(SocketError):
        node.publish()
    node.on_news = lambda: None
    assert node.publish() == {"dra": [FIRST], "device-plugin": [SECOND]}
