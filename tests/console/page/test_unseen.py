"""What the page says of what it cannot see, and of texts that mean harm."""

import pytest

from tests.console.objects import cluster, denial, gpu, node, pending, pod, state
from tests.console.page.clusters import GRANTED, HOSTILE, lively, with_policies
from tests.console.page.conftest import Visited
from tests.console.page.visitor import words
from tests.console.stand_in import status_of


def test_missing_rights_are_said_in_the_words_of_top(visited: Visited) -> None:
    known = lively()
    known.forbidden = {"nodes", "configmaps", "secrets"}
    visitor = visited(known)
    assert "? not seen: nodes: nodes is forbidden" in words(visitor.text("/"))
    assert "the right to list nodes is missing" in words(visitor.text("/"))
    assert "the right to list configmaps in namespace gpu-share is missing" in words(visitor.text("/policies"))
    assert "the right to list configmaps in namespace gpu-share is missing" in words(visitor.text("/changes"))
    pasted = visitor.post("/preview", {"pod": GRANTED})
    assert "the right to list configmaps" in words(pasted.data.decode())


def test_nothing_is_said_to_be_missing_that_may_not_be_seen(visited: Visited) -> None:
    known = lively()
    known.forbidden = {"nodes", "pods"}
    text = words(visited(known).text("/"))
    assert "No node" not in text
    assert "No pod" not in text
    assert "0 nodes" not in text
    nothing = words(visited(cluster()).text("/"))
    assert "No node has a part of gpu-share" in nothing
    assert "No pod with a share" in nothing


def test_nothing_is_said_of_gpus_whose_nodes_cannot_be_asked(visited: Visited) -> None:
    known = lively()
    known.raw["/api/v1/namespaces/gpu-share/pods"] = status_of(429, "too many requests")
    text = words(visited(known).text("/"))
    assert "3 nodes, - GPUs" in text
    assert "! gpu-a: nothing is known of its GPUs: too many requests" in text
    assert "no part of gpu-share runs there" not in text


@pytest.mark.parametrize("path", ["/", "/explain?name=x", "/policies", "/changes"])
def test_an_api_server_that_is_away_is_no_traceback(visited: Visited, path: str) -> None:
    text = words(visited(lively(), context="nowhere").text(path))
    assert "refused" in text
    assert "Traceback" not in text


def test_expired_credentials_are_said_with_what_to_do(visited: Visited) -> None:
    known = lively()
    for path in ("/api/v1/nodes", "/api/v1/pods", "/api/v1/events"):
        known.raw[path] = status_of(401, "Unauthorized")
    assert "Unauthorized: sign in again" in words(visited(known).text("/"))


def test_one_namespace_asks_for_no_more(visited: Visited) -> None:
    known = lively()
    text = words(visited(known, namespace="science").text("/"))
    assert "1 to 3 of 3" in text
    assert "/api/v1/pods" not in known.asked


def test_hostile_texts_are_texts(visited: Visited) -> None:
    odd = pod("resnet-0", phase="Failed", reason=HOSTILE, message=f"{{{{ 7919*7919 }}}} {HOSTILE}")
    odd["metadata"]["annotations"] |= {"gpu-share.dev/framework": HOSTILE}
    odd["metadata"]["name"] = f"a{HOSTILE}"
    odd["spec"]["nodeName"] = HOSTILE
    known = with_policies(
        cluster(
            state(gpu()),
            pods=(odd, pending("late", "0.2", HOSTILE)),
            events=(denial(f"gpu-share {HOSTILE}", name=HOSTILE),),
        )
    )
    known.lists["/api/v1/nodes"].append(node(f"gpu-{HOSTILE}"))
    known.lists["/api/v1/namespaces/team-vision/pods"] = [odd | {"metadata": odd["metadata"] | {"name": "resnet-0"}}]
    known.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"][f"{HOSTILE}.yaml"] = HOSTILE
    visitor = visited(known)
    for path in (
        "/",
        "/explain?namespace=team-vision&name=resnet-0",
        "/policies",
        "/changes",
        f"/?namespace={HOSTILE}",
    ):
        text = visitor.text(path)
        assert "script" in words(text), path
        assert "<script>alert" not in text, path
        assert str(7919 * 7919) not in text
