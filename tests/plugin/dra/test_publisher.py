"""The slices in the API server: as few writes as the scheduler needs to see all of a pool or nothing of it."""

from threading import Thread
from time import sleep
from typing import Any

import pytest

from plugin.dra.api_server import ApiError
from plugin.dra.devices import devices_of
from plugin.dra.publisher import Publisher
from plugin.dra.slice_objects import FieldsMissingError, reconcile, withdraw
from plugin.dra.slices import Spec, slice_name, slice_specs
from plugin.simulated.api_server import SLICES, Object, Store
from tests.plugin.dra.gpus import divided, shared
from tests.plugin.waiting import wait_until

NODE = "n"


class Api:
    """The API server's client, without a server between."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writes: list[str] = []
        store.put(f"/api/v1/nodes/{NODE}", {"metadata": {"name": NODE}})

    def get(self, path: str, **_query: str) -> Any:
        own = [one for one in self.store.below(path) if one["spec"]["nodeName"] == NODE]
        return {"items": own} if path == SLICES else self.store.objects[path]

    def create(self, path: str, body: Any) -> Any:
        place = f"{path}/{body['metadata']['name']}"
        if place in self.store.objects:
            raise ApiError("already exists", status=409)
        self.writes.append(f"create {body['metadata']['name']}")
        return self.store.put(place, body)

    def replace(self, path: str, body: Any) -> Any:
        if body["metadata"]["resourceVersion"] != self.store.objects[path]["metadata"]["resourceVersion"]:
            raise ApiError("conflict", status=409)
        self.writes.append(f"replace {body['metadata']['name']}")
        return self.store.put(path, body)

    def delete(self, path: str, body: Any) -> None:
        assert body["preconditions"]["uid"] == self.store.objects[path]["metadata"]["uid"]
        self.writes.append(f"delete {path.rpartition('/')[2]}")
        self.store.remove(path)

    @property
    def generations(self) -> set[int]:
        return {one["spec"]["pool"]["generation"] for one in self.store.below(SLICES)}


def specs(count: int, **unhealthy: str) -> tuple[Spec, ...]:
    gpus = shared(count, "mps", **unhealthy)
    return slice_specs(devices_of(gpus, division=divided(10), kept={}), gpus, node=NODE, driver_version="1")


@pytest.fixture
def api() -> Api:
    return Api(Store())


def test_a_second_look_writes_nothing(api: Api) -> None:
    assert reconcile(api, NODE, specs(8))
    assert len(api.writes) == 5
    assert not reconcile(api, NODE, specs(8))
    assert len(api.writes) == 5
    (owner,) = api.store.below(SLICES)[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", NODE, True)


def test_a_change_within_one_slice_is_one_write_of_the_same_generation(api: Api) -> None:
    reconcile(api, NODE, specs(2))
    api.writes.clear()
    reconcile(api, NODE, specs(2, gpu0="ill"))
    assert api.writes == [f"replace {slice_name(NODE, 1)}"]
    assert api.generations == {1}


def test_a_change_of_several_slices_is_a_new_generation_of_all(api: Api) -> None:
    reconcile(api, NODE, specs(8))
    api.writes.clear()
    reconcile(api, NODE, specs(8, gpu0="ill", gpu7="ill"))
    assert len(api.writes) == 5
    assert api.generations == {2}


def test_what_is_too_much_is_removed_first(api: Api) -> None:
    reconcile(api, NODE, specs(8))
    api.writes.clear()
    reconcile(api, NODE, specs(2))
    assert [one.partition(" ")[0] for one in api.writes] == ["delete"] * 3 + ["replace"] * 2
    assert api.generations == {2}


def test_a_slice_that_is_gone_makes_a_new_generation(api: Api) -> None:
    reconcile(api, NODE, specs(8))
    api.store.remove(f"{SLICES}/{slice_name(NODE, 2)}")
    reconcile(api, NODE, specs(8))
    assert api.generations == {2}
    assert not reconcile(api, NODE, specs(8))


def test_a_generation_that_was_begun_is_gone_on_with(api: Api) -> None:
    reconcile(api, NODE, specs(8))
    half = api.store.objects[f"{SLICES}/{slice_name(NODE, 0)}"]
    half["spec"]["pool"]["generation"] = 2
    api.writes.clear()
    assert reconcile(api, NODE, specs(8))
    assert api.generations == {2}
    assert api.writes == [f"replace {slice_name(NODE, number)}" for number in range(1, 5)]


def test_a_generation_that_was_begun_with_something_else_is_not(api: Api) -> None:
    reconcile(api, NODE, specs(8))
    half = api.store.objects[f"{SLICES}/{slice_name(NODE, 1)}"]
    half["spec"]["pool"]["generation"] = 2
    assert reconcile(api, NODE, specs(8, gpu0="ill"))
    assert api.generations == {3}


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


def test_a_name_that_is_taken_keeps_no_slice_from_being_published(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    taken = f"{SLICES}/{slice_name(NODE, 1)}"
    api.store.put(taken, {"metadata": {"name": slice_name(NODE, 1)}, "spec": {"nodeName": "other", "driver": "x"}})
    reconcile(api, NODE, specs(8))
    own = api.get(SLICES)["items"]
    assert len(own) == 5
    (another,) = {one["metadata"]["name"] for one in own} - {slice_name(NODE, number) for number in range(5)}
    assert another.startswith(f"{slice_name(NODE, 1)}-")
    assert "the name of a slice is taken" in caplog.text
    api.writes.clear()
    assert not reconcile(api, NODE, specs(8))
    api.store.remove(taken)
    assert not reconcile(api, NODE, specs(8))
    reconcile(api, NODE, specs(2, gpu0="ill"))
    assert f"replace {another}" in api.writes
    withdraw(api, NODE)
    assert api.get(SLICES)["items"] == []


def test_a_slice_of_this_node_in_another_pool_is_deleted_before_its_name_is_taken(api: Api) -> None:
    name = slice_name(NODE, 0)
    elsewhere = specs(1)[0] | {"pool": {"name": "elsewhere", "generation": 7, "resourceSliceCount": 1}}
    api.store.put(f"{SLICES}/{name}", {"metadata": {"name": name}, "spec": elsewhere})
    reconcile(api, NODE, specs(1))
    assert api.writes[:2] == [f"delete {name}", f"create {name}"]
    assert api.generations == {1}


def test_two_slices_of_one_number_become_one(api: Api) -> None:
    reconcile(api, NODE, specs(1))
    (*_, last) = api.get(SLICES)["items"]
    again = {**last, "metadata": {"name": f"{last['metadata']['name']}-0123abcd"}}
    api.store.put(f"{SLICES}/{again['metadata']['name']}", again)
    assert reconcile(api, NODE, specs(1))
    assert len(api.get(SLICES)["items"]) == len(specs(1))
    assert len(api.generations) == 1


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


def test_what_is_withdrawn_is_gone(api: Api) -> None:
    reconcile(api, NODE, specs(8))
    withdraw(api, NODE)
    assert api.store.below(SLICES) == []


@pytest.mark.parametrize("field", ["consumesCounters", "taints", "attributes"])
def test_fields_that_the_api_server_leaves_out_are_named(field: str) -> None:
    def keeps(spec: Object) -> Object:
        for device in spec.get("devices", ()):
            device.pop(field, None)
        return spec

    with pytest.raises(FieldsMissingError, match=rf"does not keep devices\[\]\.{field} of slices"):
        reconcile(Api(Store(keeps=keeps)), NODE, specs(1, gpu0="ill"))


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
