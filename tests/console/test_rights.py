"""The rights that the documents and the manifests name are enough; where one is missing, the rest is shown."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.console.explained import OURS, explain, known, owned
from tests.console.objects import denial, pending, pod
from tests.console.rights import Granting, Right, granting
from tests.console.stand_in import Object, StandIn, status_of
from tests.manifests.admission import BASE

Asked = Callable[..., Result]
_OF_A_TENANT: set[Right] = {
    ("list", "nodes", ""),
    ("list", "pods", "team-vision"),
    ("list", "events", "team-vision"),
}
_OF_EXPLAIN: set[Right] = {
    ("list", "configmaps", "gpu-share"),
    ("get", "namespaces", ""),
    ("list", "resourcequotas", "team-vision"),
}


def of_the_role() -> set[Right]:
    (role,) = (one for one in BASE if one["kind"] == "Role" and one["metadata"]["name"] == "gpu-share-viewer")
    return {
        (verb, resource, "gpu-share")
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def seen_by_a_tenant(*pods: Object, **rights: Right) -> Granting:
    """A cluster of which a user sees one namespace and, by the Role of the manifests, gpu-share's own pods."""
    on = known(*pods)
    on.lists[f"{OURS}/events"] = [denial("gpu-share: too much", name="bert-5d")]
    return granting(on, *_OF_A_TENANT, *of_the_role(), *_OF_EXPLAIN, *rights.values())


def test_the_role_and_the_rights_in_one_namespace_are_enough_for_top_with_n(shown: Callable[..., Any]) -> None:
    top = shown(seen_by_a_tenant(pod("resnet-0")), "top", "-n", "team-vision")
    assert top["unseen"] == []
    assert [len(node["gpus"]) for node in top["nodes"]] == [2]


def test_they_are_enough_for_explain_of_a_pod(asked: Asked) -> None:
    text = explain(asked, seen_by_a_tenant(pending("late", "0.5", "no room")), "late")
    assert "gpu-a: no GPU has 0.5 free: GPU 0 has 0.2" in text
    assert "Policy: team-vision.yaml" in text


@pytest.mark.parametrize("name", ["deploy/resnet", "resnet", "rs/resnet-5d"])
def test_a_workload_that_may_not_be_read_is_explained_by_its_pods(asked: Asked, name: str) -> None:
    text = explain(asked, seen_by_a_tenant(owned(pod("resnet-5d-x"), "ReplicaSet", "resnet-5d")), name)
    assert text.startswith("Pod team-vision/resnet-5d-x: Running on gpu-a")
    kind = "replicasets" if name.startswith("rs/") else "deployments"
    assert f"the right to get {kind} in namespace team-vision is missing" in text.partition("Not seen")[2]


@pytest.mark.parametrize("name", ["deploy/bert", "bert"])
def test_one_that_may_not_be_read_is_explained_by_its_denials(asked: Asked, name: str) -> None:
    text = explain(asked, seen_by_a_tenant(), name)
    assert text.startswith("Deployment team-vision/bert: no pods")
    assert "    ReplicaSet bert-5d, 9 times: gpu-share: too much" in text
    assert "the right to get deployments in namespace team-vision is missing" in text.partition("Not seen")[2]


def test_one_that_may_not_be_read_gives_way_to_one_that_can(asked: Asked) -> None:
    on = seen_by_a_tenant(job=("get", "jobs", "team-vision"))
    on.raw["/apis/batch/v1/namespaces/team-vision/jobs/train"] = (200, b'{"spec": {"suspend": true}}')
    text = explain(asked, on, "train")
    assert text.startswith("Job team-vision/train: no pods\n  Not created\n    it is suspended\n")
    assert "the right to get deployments, statefulsets, daemonsets, replicasets in namespace team-vision" in text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("deploy/none", "explain: Deployment team-vision/none: deployments is forbidden"),
        ("none", "explain: there is no pod team-vision/none, and no workload can be seen: Deployment, Statefulset"),
    ],
)
def test_one_of_which_nothing_is_seen_is_a_failure_that_names_the_right(asked: Asked, name: str, told: str) -> None:
    ran = asked(seen_by_a_tenant(), "explain", "-n", "team-vision", name)
    assert ran.exit_code == 1
    assert told in ran.stderr
    assert "; the right to get deployments" in ran.stderr
    assert ran.stderr.endswith(" in namespace team-vision is missing\n")


def test_a_workload_that_a_busy_api_server_does_not_give_is_explained_likewise(asked: Asked) -> None:
    on: StandIn = known(owned(pod("resnet-5d-x"), "ReplicaSet", "resnet-5d"))
    on.raw["/apis/apps/v1/namespaces/team-vision/deployments/resnet"] = status_of(429, "too many requests")
    text = explain(asked, on, "deploy/resnet")
    assert "    Deployment team-vision/resnet: too many requests\n" in text
    assert "is missing" not in text
