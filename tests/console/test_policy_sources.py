"""The policies by which a cluster is judged are those of the ConfigMaps that its webhook reads."""

from collections.abc import Callable
from typing import Any

import pytest

from console.api_server import ApiServer
from console.look import look
from policies.reading.directory import MOST_FILES
from tests.console.explained import explain, known
from tests.console.objects import cluster, denial, part, pending, pod, read_by
from tests.console.stand_in import Object, StandIn, status_of
from tests.console.test_denials_by_others import KYVERNO, REPLICA_SET, answer, template
from tests.console.test_doctor import installed

Asked = Callable[..., Any]
Shown = Callable[..., Any]
Connected = Callable[[StandIn], ApiServer]
_PODS = "/api/v1/namespaces/gpu-share/pods"
_MAPS = "/api/v1/namespaces/gpu-share/configmaps"
SHIPPED = ("gpu-share-policies", "gpu-share-cluster")
DISABLED = {"team-vision.yaml": "enabled: false\n"}
BROKEN = {"team-new.yaml": "mode: x\n"}
SECRET = {"secret": {"name": "team-policies"}}
ITEM = {"items": [{"key": "mine", "path": "team-new.yaml"}]}


def config_map(name: str, files: dict[str, str]) -> Object:
    return {"metadata": {"name": name}, "data": files}


def webhook(volume: Object, name: str = "gpu-a", **metadata: Any) -> Object:
    """A webhook pod that has the policies from *volume*."""
    made = part(name, "webhook")
    made["metadata"] |= metadata
    made["spec"]["volumes"] = [volume]
    return made


def reading(on: StandIn, *webhooks: Object, **maps: dict[str, str]) -> StandIn:
    """Have these webhook pods, and *maps* beside the ConfigMaps as shipped, with _ for -."""
    others = [one for one in on.lists[_PODS] if one["metadata"]["labels"]["app.kubernetes.io/component"] != "webhook"]
    on.lists[_PODS] = [*others, *webhooks]
    on.lists.setdefault(_MAPS, []).extend(config_map(name.replace("_", "-"), files) for name, files in maps.items())
    return on


def with_third(on: StandIn, files: dict[str, str], **source: Any) -> StandIn:
    """Have a webhook that reads *files* from a third ConfigMap."""
    volume = read_by(*SHIPPED, "team-policies")
    volume["projected"]["sources"][2]["configMap"] |= source
    return reading(on, webhook(volume), team_policies=files)


def validity(shown: Shown, on: StandIn) -> Any:
    return {one["check"]: one for one in shown(on, "doctor")}["policies-valid"]


def test_doctor_finds_what_is_wrong_in_a_further_config_map(shown: Shown) -> None:
    found = validity(shown, with_third(installed(), BROKEN))
    assert found["status"] == "failure"
    assert found["found"][0].startswith("ConfigMap gpu-share/team-policies/team-new.yaml:1: mode: expected")


@pytest.mark.parametrize("name", ["team-vision.yaml", "team-vision.yaml.yaml"])
def test_the_config_map_that_is_told_is_the_one_of_the_file_that_counts(shown: Shown, name: str) -> None:
    (told,) = validity(shown, with_third(installed(), {name: "mode: x\n"}))["found"]
    assert told.startswith(f"ConfigMap gpu-share/team-policies/{name}")


def test_a_key_without_the_ending_of_a_policy_file_is_told_as_the_webhook_tells_of_it(shown: Shown) -> None:
    (told,) = validity(shown, with_third(installed(), {"team-new": "mode: warn\n", "README": ""}))["found"]
    assert told == (
        "ConfigMap gpu-share/team-policies/team-new: expected _cluster.yaml, _default.yaml or <namespace>.yaml: "
        "rename or remove the file"
    )


@pytest.mark.parametrize("ending", [".yaml", ""])
def test_too_many_files_are_told_by_the_config_maps_that_have_them(shown: Shown, ending: str) -> None:
    on = with_third(installed(), {f"n{number}{ending}": "" for number in range(MOST_FILES)})
    (told,) = validity(shown, on)["found"]
    places = " and ".join(f"ConfigMap gpu-share/{name}" for name in (*SHIPPED, "team-policies"))
    assert told.startswith(f"{places}: expected at most {MOST_FILES} policy files, got ")


def test_explain_decides_by_the_last_of_two_files_of_one_name(asked: Asked) -> None:
    text = explain(asked, with_third(known(pod("resnet-0")), DISABLED), "resnet-0")
    assert "Sharing of GPUs is disabled in this namespace (team-vision.yaml:1)" in text


@pytest.mark.parametrize("name", ["team-policies", "gpu-share-cluster-1"])
def test_a_config_map_that_the_webhook_does_not_read_decides_nothing(shown: Shown, name: str) -> None:
    on = reading(installed(), webhook(read_by(*SHIPPED)), **{name: {**BROKEN, "_cluster.yaml": "x: 1\n"}})
    assert validity(shown, on)["status"] == "ok"


def test_a_cluster_installed_with_other_names_is_read_by_them(shown: Shown) -> None:
    on = reading(installed(), webhook(read_by("mine", "gpu-share-cluster-1")), mine=BROKEN, gpu_share_cluster_1={})
    on.lists[_MAPS] = on.lists[_MAPS][2:]
    assert validity(shown, on)["found"][0].startswith("ConfigMap gpu-share/mine/team-new.yaml:1: mode: expected")


def test_a_volume_may_be_a_single_config_map(shown: Shown) -> None:
    on = reading(installed(), webhook({"name": "policies", "configMap": {"name": "mine"}}), mine=BROKEN)
    assert validity(shown, on)["found"][0].startswith("ConfigMap gpu-share/mine/team-new.yaml:1: mode: expected")


def test_of_a_config_map_with_items_those_files_count_alone(shown: Shown) -> None:
    held = {"mine": "enabled: false\n", "_default.yaml": "mode: x\n"}
    assert validity(shown, with_third(installed(), held, **ITEM))["status"] == "ok"
    (told,) = validity(shown, with_third(installed(), {}, **ITEM))["found"]
    assert told == "ConfigMap gpu-share/team-policies has no key mine, which the volume policies takes from it"


def test_a_config_map_that_is_not_there_is_told_unless_it_is_optional(shown: Shown) -> None:
    on = installed()
    needed, optional = read_by(*SHIPPED, "none"), read_by(*SHIPPED, "none")
    optional["projected"]["sources"][2]["configMap"]["optional"] = True
    found = validity(shown, reading(on, webhook(needed)))
    assert (found["status"], found["found"]) == ("failure", ["there is no ConfigMap gpu-share/none"])
    assert validity(shown, reading(on, webhook(optional)))["status"] == "ok"


@pytest.mark.parametrize(
    ("older", "status"),
    [
        ({}, "ok"),
        ({"creationTimestamp": "2026-01-03T00:00:00Z", "deletionTimestamp": "2026-01-03T00:00:09Z"}, "ok"),
        ({"creationTimestamp": "2026-01-03T00:00:00Z"}, "failure"),
    ],
    ids=["before a rollout", "about to end", "the newest"],
)
def test_of_the_pods_of_two_revisions_the_newest_that_is_to_run_counts(
    shown: Shown, older: dict[str, str], status: str
) -> None:
    of_older = webhook(read_by(*SHIPPED, "old"), "gpu-b", **{"creationTimestamp": "2026-01-01T00:00:00Z", **older})
    of_newer = webhook(read_by(*SHIPPED), creationTimestamp="2026-01-02T00:00:00Z")
    for both in ((of_older, of_newer), (of_newer, of_older)):
        assert validity(shown, reading(installed(), *both, old=BROKEN))["status"] == status


def test_without_a_webhook_pod_they_are_the_ones_that_are_shipped(shown: Shown) -> None:
    on = reading(installed())
    assert validity(shown, on)["status"] == "ok"
    on.lists[_MAPS][0]["data"] = BROKEN
    assert validity(shown, on)["status"] == "failure"


def test_where_the_webhook_is_not_to_be_seen_nothing_is_judged_by_what_is_shipped(shown: Shown, asked: Asked) -> None:
    on = installed()
    on.raw[_PODS] = status_of(403, 'pods is forbidden: User "viewer" cannot list resource "pods"')
    found = validity(shown, on)
    assert (found["status"], found["right"]) == ("unknown", "list pods in namespace gpu-share")
    on = known(pod("resnet-0"))
    on.raw[_PODS] = status_of(429, "too many requests")
    text = explain(asked, on, "resnet-0")
    assert "the policies: it is not known which ConfigMaps the webhook reads: too many requests" in text


def test_of_a_volume_that_is_more_than_config_maps_nothing_is_known(shown: Shown, asked: Asked) -> None:
    volume = read_by(*SHIPPED)
    volume["projected"]["sources"].append(SECRET)
    on = reading(installed(), webhook(volume))
    found = validity(shown, on)
    assert found["status"] == "unknown"
    why = "pod gpu-share-webhook-gpu-a has no volume policies that is made of ConfigMaps alone"
    assert found["found"] == [f"it is not known which ConfigMaps the webhook reads: {why}"]
    same = {one["check"]: one for one in shown(on, "doctor")}["policies-same"]
    assert "webhook read what is not made of ConfigMaps alone" in same["found"]
    text = explain(asked, reading(known(pending("late", "0.5", "")), webhook(volume)), "late")
    assert "Policies of now" not in text


def test_parts_that_take_other_files_of_one_config_map_do_not_have_the_same(shown: Shown) -> None:
    on = with_third(installed(), {"mine": ""}, **ITEM)
    same = {one["check"]: one for one in shown(on, "doctor")}["policies-same"]
    told = "webhook read gpu-share-policies and gpu-share-cluster and team-policies (team-new.yaml of mine)"
    assert (same["status"], told in same["found"]) == ("warning", True)


@pytest.mark.parametrize(("third", "denials"), [("resourceNames: {mps: k8s.amazonaws.com/vgpu}\n", 1), ("", 0)])
def test_how_shares_are_called_is_read_where_the_webhook_reads_it(
    connected: Connected, third: str, denials: int
) -> None:
    on = cluster(events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = answer({"template": template({"cpu": "1", "k8s.amazonaws.com/vgpu": "2"})})
    on.lists[_MAPS] = [config_map("gpu-share-policies", {}), config_map("gpu-share-cluster", {"_cluster.yaml": ""})]
    seen = look(connected(with_third(on, {"_cluster.yaml": third})))
    assert (len(seen.denials), seen.unseen) == (denials, ())


def test_a_config_map_that_may_say_how_shares_are_called_and_is_missing_is_told(connected: Connected) -> None:
    on = cluster(events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = answer({"template": template({"k8s.amazonaws.com/vgpu": "2"})})
    on.lists[_MAPS] = [config_map("gpu-share-policies", {})]
    (hidden,) = look(connected(reading(on, webhook(read_by(*SHIPPED))))).unseen
    assert "_cluster.yaml cannot be read: there is no ConfigMap gpu-share/gpu-share-cluster" in hidden.why
