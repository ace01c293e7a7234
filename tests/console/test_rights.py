"""The rights that the documents and the manifests name are enough."""

from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.console.explained import OURS, explain, known
from tests.console.objects import denial, pending, pod
from tests.console.rights import Granting, Right, granting
from tests.console.stand_in import Object
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


def seen_by_a_tenant(*pods: Object) -> Granting:
    """A cluster of which a user sees one namespace and, by the Role of the manifests, gpu-share's own pods."""
    on = known(*pods)
    on.lists[f"{OURS}/events"] = [denial("gpu-share: too much", name="bert-5d")]
    return granting(on, *_OF_A_TENANT, *of_the_role(), *_OF_EXPLAIN)


def test_the_role_and_the_rights_in_one_namespace_are_enough_for_top_with_n(shown: Callable[..., Any]) -> None:
    top = shown(seen_by_a_tenant(pod("resnet-0")), "top", "-n", "team-vision")
    assert top["unseen"] == []
    assert [len(node["gpus"]) for node in top["nodes"]] == [2]


def test_they_are_enough_for_explain_of_a_pod(asked: Asked) -> None:
    text = explain(asked, seen_by_a_tenant(pending("late", "0.5", "no room")), "late")
    assert "gpu-a: no GPU has 0.5 free: GPU 0 has 0.2" in text
    assert "Policy: team-vision.yaml" in text
