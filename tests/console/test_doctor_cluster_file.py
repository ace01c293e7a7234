"""`doctor` warns where others than administrators can give `_cluster.yaml`, by the order of ConfigMaps in a volume."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.console.objects import read_by
from tests.console.stand_in import Object, StandIn, status_of
from tests.console.test_doctor import installed

Shown = Callable[..., Any]
_PODS = "/api/v1/namespaces/gpu-share/pods"
_MAPS = "/api/v1/namespaces/gpu-share/configmaps"
_IN_ALL = "in the volume of mps and plugin and webhook"
_ITEMS = {"items": [{"key": "_default.yaml", "path": "_default.yaml"}]}
_ITS_FILE = {"items": [{"key": "mine", "path": "./_cluster.yaml"}]}
POLICIES, CLUSTER, TEAM = "gpu-share-policies", "gpu-share-cluster", "team"
DEFAULT, FILE = {"_default.yaml": ""}, {"_cluster.yaml": ""}


def reading(volume: Object, maps: dict[str, dict[str, str]]) -> StandIn:
    """An installation whose parts read *volume*, which is of *maps*."""
    on = installed()
    for one in on.lists[_PODS]:
        one["spec"]["volumes"] = [volume] if one["spec"]["volumes"] else []
    on.lists[_MAPS] = [{"metadata": {"name": name}, "data": files} for name, files in maps.items()]
    return on


def found(shown: Shown, on: StandIn) -> tuple[str, list[str]]:
    (one,) = (one for one in shown(on, "doctor") if one["check"] == "policies-cluster")
    return one["status"], one["found"]


@pytest.mark.parametrize(
    ("maps", "told"),
    [
        ({POLICIES: DEFAULT, CLUSTER: FILE}, []),
        ({TEAM: FILE, POLICIES: DEFAULT, CLUSTER: FILE}, []),
        ({POLICIES: DEFAULT, TEAM: FILE, CLUSTER: FILE}, []),
        (
            {POLICIES: DEFAULT, CLUSTER: FILE, TEAM: {}},
            [f"team stands after gpu-share-cluster {_IN_ALL}: a _cluster.yaml in it would count"],
        ),
        (
            {POLICIES: DEFAULT, CLUSTER: FILE, TEAM: FILE},
            [f"team stands after gpu-share-cluster {_IN_ALL}: its _cluster.yaml counts"],
        ),
        (
            {CLUSTER: FILE, POLICIES: DEFAULT},
            [f"{POLICIES} stands after gpu-share-cluster {_IN_ALL}: a _cluster.yaml in it would count"],
        ),
        (
            {POLICIES: DEFAULT, CLUSTER: {}},
            ["gpu-share-cluster has no _cluster.yaml: one in gpu-share-policies would count"],
        ),
        (
            {POLICIES: FILE, CLUSTER: {}},
            ["gpu-share-cluster has no _cluster.yaml: that of gpu-share-policies counts"],
        ),
        ({"mine": FILE}, []),
        ({"mine": DEFAULT, "mine-cluster": FILE}, []),
        (
            {"mine": FILE, TEAM: {}},
            [f"team stands after mine {_IN_ALL}: a _cluster.yaml in it would count"],
        ),
        (
            {"mine": FILE, "acme-gpu-share-cluster": FILE, TEAM: {}},
            [f"team stands after acme-gpu-share-cluster {_IN_ALL}: a _cluster.yaml in it would count"],
        ),
        ({f"acme-{POLICIES}": DEFAULT, f"acme-{CLUSTER}": FILE}, []),
        ({f"{CLUSTER}-{POLICIES}": DEFAULT, f"{CLUSTER}-{CLUSTER}": FILE}, []),
        ({f"{POLICIES}-4k9m2t6h7g": DEFAULT, f"{CLUSTER}-b5c6d7f8g9": FILE}, []),
        (
            {f"acme-{POLICIES}": DEFAULT, f"acme-{CLUSTER}": FILE, f"acme-{CLUSTER}-teams": FILE},
            [f"acme-{CLUSTER}-teams stands after acme-{CLUSTER} {_IN_ALL}: its _cluster.yaml counts"],
        ),
        (
            {f"{POLICIES}-4k9m2t6h7g": DEFAULT, f"{CLUSTER}-b5c6d7f8g9": FILE, f"{CLUSTER}-team": {}},
            [f"{CLUSTER}-team stands after {CLUSTER}-b5c6d7f8g9 {_IN_ALL}: a _cluster.yaml in it would count"],
        ),
        ({TEAM: DEFAULT, "mine": {}}, ["mine has no _cluster.yaml: one in team would count"]),
    ],
)
def test_who_can_give_the_file_is_told(shown: Shown, maps: dict[str, dict[str, str]], told: list[str]) -> None:
    assert found(shown, reading(read_by(*maps), maps)) == ("warning" if told else "ok", told)


@pytest.mark.parametrize(
    ("maps", "told"),
    [
        (
            {TEAM: FILE, "ml-policies": DEFAULT, "ml-cluster": FILE},
            "team and ml-cluster may each be for _cluster.yaml: that of ml-cluster counts",
        ),
        (
            {f"a-{CLUSTER}": FILE, "ml-policies": DEFAULT, f"b-{CLUSTER}": {}},
            f"a-{CLUSTER} and b-{CLUSTER} may each be for _cluster.yaml: that of a-{CLUSTER} counts",
        ),
        (
            {f"a-{CLUSTER}": {}, f"b-{CLUSTER}": {}},
            f"a-{CLUSTER} and b-{CLUSTER} may each be for _cluster.yaml: a _cluster.yaml in b-{CLUSTER} would count",
        ),
    ],
)
def test_where_several_may_be_the_administrators_the_one_that_counts_is_named(
    shown: Shown, maps: dict[str, dict[str, str]], told: str
) -> None:
    assert found(shown, reading(read_by(*maps), maps)) == ("unknown", [told])


@pytest.mark.parametrize(("items", "status"), [(_ITEMS, "ok"), (_ITS_FILE, "warning")])
def test_a_source_whose_items_name_its_files_gives_no_others(shown: Shown, items: Object, status: str) -> None:
    volume = read_by(POLICIES, CLUSTER, TEAM)
    volume["projected"]["sources"][2]["configMap"] |= items
    on = reading(volume, {POLICIES: DEFAULT, CLUSTER: FILE, TEAM: {**DEFAULT, "mine": ""}})
    assert found(shown, on)[0] == status


def test_of_a_plugin_that_reads_what_is_no_config_map_nothing_is_known(shown: Shown) -> None:
    on, volume = installed(), read_by(POLICIES, CLUSTER)
    volume["projected"]["sources"].append({"secret": {"name": TEAM}})
    on.lists[_PODS][0]["spec"]["volumes"] = [volume]
    assert found(shown, on) == ("unknown", ["plugin read what is not made of ConfigMaps alone"])


def in_a_rollout(maps: dict[str, dict[str, str]], *, further: str) -> StandIn:
    """One with two pods of the webhook, the old one of which, and of no other part, has the *further* ConfigMap."""
    on = reading(read_by(*maps), {**maps, further: {}})
    (webhook,) = (one for one in on.lists[_PODS] if "webhook" in one["metadata"]["name"])
    old = {**webhook, "spec": {**webhook["spec"], "volumes": [read_by(further, *maps)]}}
    on.lists[_PODS].append({**old, "metadata": {**webhook["metadata"], "name": "gpu-share-webhook-old", "uid": "old"}})
    return on


def test_what_is_true_of_the_volumes_of_several_pods_is_said_once_of_all_parts(shown: Shown) -> None:
    told = f"team stands after gpu-share-cluster {_IN_ALL}: a _cluster.yaml in it would count"
    on = in_a_rollout({POLICIES: DEFAULT, CLUSTER: FILE, TEAM: {}}, further="more")
    assert found(shown, on) == ("warning", [told])
    on = in_a_rollout({POLICIES: DEFAULT, CLUSTER: FILE}, further="more")
    on.lists[_MAPS] = [one for one in on.lists[_MAPS] if one["metadata"]["name"] != CLUSTER]
    assert found(shown, on) == ("unknown", [f"mps and plugin and webhook read {CLUSTER}, which is not there"])


def test_where_config_maps_cannot_be_listed_their_order_is_judged(shown: Shown) -> None:
    on = reading(read_by(POLICIES, CLUSTER, TEAM), {})
    on.raw[_MAPS] = status_of(403, 'configmaps is forbidden: User "viewer" cannot list resource "configmaps"')
    assert found(shown, on)[0] == "warning"
    on = reading(read_by(POLICIES, CLUSTER), {})
    on.raw[_MAPS] = status_of(403, 'configmaps is forbidden: User "viewer" cannot list resource "configmaps"')
    assert found(shown, on)[0] == "unknown"


def test_a_config_map_that_is_not_there_has_no_file_to_miss_unless_pods_start_without_it(shown: Shown) -> None:
    told = f"mps and plugin and webhook read {CLUSTER}, which is not there"
    assert found(shown, reading(read_by(POLICIES, CLUSTER), {POLICIES: DEFAULT})) == ("unknown", [told])
    volume = read_by(POLICIES, CLUSTER)
    volume["projected"]["sources"][1]["configMap"]["optional"] = True
    told = f"{CLUSTER} has no _cluster.yaml: one in {POLICIES} would count"
    assert found(shown, reading(volume, {POLICIES: DEFAULT})) == ("warning", [told])


def test_the_order_is_known_where_no_policies_are_valid(shown: Shown) -> None:
    maps = {POLICIES: {"_default.yaml": "shares: {"}, CLUSTER: FILE}
    assert found(shown, reading(read_by(*maps), maps)) == ("ok", [])


def test_of_a_part_without_the_volume_nothing_is_known(shown: Shown) -> None:
    on = installed()
    for one in on.lists[_PODS]:
        if one["metadata"]["labels"]["app.kubernetes.io/component"] == "mps":
            one["spec"]["volumes"] = [{**one, "name": "files"} for one in one["spec"]["volumes"]]
    assert found(shown, on) == ("unknown", ["mps read no volume of the name policies"])


def test_where_no_part_that_reads_policies_is_to_run_there_is_nothing_to_judge(shown: Shown) -> None:
    on = installed()
    on.lists[_PODS] = [one for one in on.lists[_PODS] if not one["spec"]["volumes"]]
    assert found(shown, on) == ("not-applicable", ["no part that reads policies is to run"])


def test_of_very_many_that_stand_after_it_some_are_named(shown: Shown) -> None:
    maps = {POLICIES: DEFAULT, CLUSTER: FILE, **{f"team-{number}": {} for number in range(100)}}
    status, told = found(shown, reading(read_by(*maps), maps))
    assert (status, len(told), told[-1]) == ("warning", 11, "and 90 more")
