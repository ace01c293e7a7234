"""When slices are published: again where that failed, and never for a kubelet that does not know the driver."""

from threading import Thread
from time import sleep
from typing import Any

import pytest

from plugin.dra.api_server import ApiError
from plugin.dra.publisher import Publisher
from plugin.dra.slice_objects import reconcile
from plugin.dra.slices import slice_name
from plugin.simulated.api_server import SLICES, Store
from tests.plugin.dra.kept_slices import NODE, Api, specs
from tests.plugin.waiting import wait_until


class Failing(Api):
    """One that deletes nothing at first."""

    def __init__(self, store: Store, *, failures: int) -> None:
        super().__init__(store)
        self.failures = failures

    def delete(self, path: str, body: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise ApiError("no room", status=507)
        super().delete(path, body)


@pytest.fixture
def api() -> Api:
    return Api(Store())


def test_what_has_failed_is_tried_again_when_its_time_comes_and_at_once_when_there_is_something_new(api: Api) -> None:
    tried: list[Any] = []
    is_full = [True]

    class Full(Api):
        def create(self, path: str, body: Any) -> Any:
            tried.append((path, body))
            if is_full:
                raise ApiError("no room", status=507)
            return super().create(path, body)

    publisher = Publisher(Full(api.store), node=NODE)
    thread = Thread(target=publisher.run)
    thread.start()
    try:
        publisher.publish(specs(1))
        publisher.registered()
        wait_until(lambda: len(tried) == 1)
        for _ in range(20):
            publisher.look()
            sleep(0.01)
        assert len(tried) == 1
        publisher.publish(specs(2))
        wait_until(lambda: len(tried) == 2)
        wait_until(lambda: len(tried) == 3)
        is_full.clear()
        publisher.publish(specs(3))
        wait_until(lambda: len(api.store.below(SLICES)) == len(specs(3)))
        api.store.remove(f"{SLICES}/{slice_name(NODE, 1)}")
        tried.clear()
        publisher.look()
        wait_until(lambda: len(tried) == 1, timeout_seconds=1)
    finally:
        publisher.stop()
        thread.join()


def test_a_conflict_that_comes_again_is_said(api: Api) -> None:
    is_changed = [True]

    class Changed(Api):
        def replace(self, path: str, body: Any) -> Any:
            if is_changed:
                raise ApiError("the object has been modified", status=409)
            return super().replace(path, body)

    reconcile(api, NODE, specs(1))
    publisher = Publisher(Changed(api.store), node=NODE)
    publisher.publish(specs(1, gpu0="ill"))
    publisher.registered()
    thread = Thread(target=publisher.run)
    thread.start()
    try:
        wait_until(lambda: "has been modified" in publisher.told)
        is_changed.clear()
        wait_until(lambda: publisher.told == "slices published")
    finally:
        publisher.stop()
        thread.join()


def test_a_kubelet_that_does_not_know_the_driver_any_more_gets_no_slices(api: Api) -> None:
    publisher = Publisher(api, node=NODE)
    thread = Thread(target=publisher.run)
    thread.start()
    try:
        publisher.registered()
        wait_until(lambda: publisher.not_published == "no GPU has been found yet")
        publisher.publish(specs(2))
        wait_until(lambda: publisher.not_published == "")
        publisher.registered("no handler")
        wait_until(lambda: api.store.below(SLICES) == [])
        publisher.look()
        assert publisher.not_published == "the kubelet does not register the driver: no handler"
        assert publisher.told == "slices not published: the kubelet does not register the driver: no handler"
        publisher.registered()
        wait_until(lambda: publisher.not_published == "")
        assert api.store.below(SLICES)
    finally:
        publisher.stop()
        thread.join()


def test_a_withdrawal_that_fails_is_tried_again_and_the_kubelet_stays_the_reason(api: Api) -> None:
    reconcile(api, NODE, specs(2))  # of an earlier plugin
    failing = Failing(api.store, failures=2)
    publisher = Publisher(failing, node=NODE)
    thread = Thread(target=publisher.run)
    thread.start()
    try:
        publisher.publish(specs(2))
        publisher.registered("no handler")
        wait_until(lambda: api.store.below(SLICES) == [])
        assert publisher.not_published == "the kubelet does not register the driver: no handler"
        assert failing.failures == 0
    finally:
        publisher.stop()
        thread.join()


def test_a_withdrawal_that_failed_is_no_trouble_once_the_kubelet_knows_the_driver(api: Api) -> None:
    reconcile(api, NODE, specs(2))  # of an earlier plugin
    publisher = Publisher(Failing(api.store, failures=100), node=NODE)
    thread = Thread(target=publisher.run)
    thread.start()
    try:
        publisher.registered("no handler")
        wait_until(lambda: publisher.problem == "no room")
        publisher.registered()
        wait_until(lambda: publisher.not_published == "no GPU has been found yet")
    finally:
        publisher.stop()
        thread.join()
