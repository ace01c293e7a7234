"""The slices in the API server: as few writes as the scheduler needs to see all of a pool or nothing of it."""

import pytest

from plugin.dra.slice_objects import FieldsMissingError, reconcile, withdraw
from plugin.dra.slices import slice_name
from plugin.simulated.api_server import SLICES, Object, Store
from tests.plugin.dra.kept_slices import NODE, Api, specs


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
