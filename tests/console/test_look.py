"""What is seen of a cluster, and what is said of that which cannot be."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import console.api_server
from console.api_server import ApiServer
from console.kubeconfig import connect
from console.look import look
from tests.console.objects import ago, cluster, denial, gpu, node, part, pod, state, tell, tenant
from tests.console.stand_in import StandIn

Connected = Callable[[StandIn], ApiServer]
A = state(gpu(tenant("resnet-0", 2)), on="gpu-a")
B = state(gpu(), on="gpu-b")


def test_nodes_pods_and_what_nodes_say_are_one_value(connected: Connected) -> None:
    seen = look(connected(cluster(A, B, pods=(pod("resnet-0"),))))
    assert [one.name for one in seen.nodes] == ["gpu-a", "gpu-b"]
    assert [(one.name, made.uuid, held.pod) for one, made, held in seen.tenants()] == [("gpu-a", "GPU-0", "resnet-0")]
    assert seen.pods[0].grant is not None
    assert seen.pods[0].grant.containers["main"].share == "0.2"
    assert (seen.context, seen.unseen) == ("here", ())


def test_other_nodes_are_left_out_and_one_without_a_part_is_silent(connected: Connected) -> None:
    known = cluster(A)
    known.lists["/api/v1/nodes"] += [node("cpu-only", labelled=False), node("gpu-new")]
    seen = look(connected(known))
    assert [(one.name, one.state is not None) for one in seen.nodes] == [("gpu-a", True), ("gpu-new", False)]


@pytest.mark.parametrize(
    ("resource", "right"),
    [
        ("nodes", "list nodes"),
        ("events", "list events"),
        ("pods/proxy", "get pods/proxy in namespace gpu-share"),
    ],
)
def test_a_missing_right_is_named_and_the_rest_is_seen(connected: Connected, resource: str, right: str) -> None:
    known = cluster(A, pods=(pod("resnet-0"),))
    known.forbidden = {resource}
    seen = look(connected(known))
    silent = [one.silent for one in seen.nodes if one.silent]
    assert [one.right for one in (*seen.unseen, *silent)] == [right]
    assert "cannot" in (*seen.unseen, *silent)[0].why
    assert [one.name for one in seen.nodes] == ["gpu-a"]
    assert len(seen.pods) == 1


def test_without_pods_only_nodes_are_seen(connected: Connected) -> None:
    known = cluster(A)
    known.forbidden = {"pods"}
    seen = look(connected(known))
    assert {one.right for one in seen.unseen} == {"list pods", "list pods in namespace gpu-share"}
    assert [one.state for one in seen.nodes] == [None]


def test_a_namespace_is_asked_for_alone(connected: Connected) -> None:
    known = cluster(A)
    known.lists["/api/v1/namespaces/team-vision/pods"] = [pod("resnet-0")]
    seen = look(connected(known), namespace="team-vision")
    assert [one.name for one in seen.pods] == ["resnet-0"]
    assert "/api/v1/pods" not in known.asked
    assert "/api/v1/namespaces/team-vision/events" in known.asked


def test_the_second_part_of_a_node_is_asked_where_the_first_is_gone(connected: Connected) -> None:
    known = cluster(A)
    known.lists["/api/v1/namespaces/gpu-share/pods"].append(part("gpu-a", "mps"))
    del known.states["gpu-share-plugin-gpu-a:9407"]
    tell(known, A, component="mps")
    (seen,) = look(connected(known)).nodes
    assert seen.state == A
    assert seen.silent is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "expected the state of a node"),
        (b'{"version": 99}', "which is newer"),
        (b" " * (9 * 1024 * 1024), "larger than 8388608 bytes"),
        (b'{"version":1,"part":"plugin","program":"\\u001b[2J","node":"gpu-a"}', "expected the state of a node"),
    ],
)
def test_a_node_that_says_nothing_of_use_is_named_with_the_reason(
    connected: Connected, content: bytes, why: str
) -> None:
    known = cluster(A, B)
    known.states["gpu-share-plugin-gpu-a:9407"] = lambda: (200, content)
    first, second = look(connected(known)).nodes
    assert first.silent is not None
    assert why in first.silent.why
    assert first.silent.right == ""
    assert second.state == B


def test_what_a_node_itself_rejects_is_no_missing_right(connected: Connected) -> None:
    known = cluster(A)
    known.uids["gpu-share-plugin-gpu-a:9407"] = "another"
    (seen,) = look(connected(known)).nodes
    assert seen.silent is not None
    assert "HTTP 403 Forbidden: expected ?pod= with metadata.uid" in seen.silent.why
    assert seen.silent.right == ""


@pytest.mark.parametrize(
    "target", ["/api/v1/namespaces/kube-system/secrets", "http://a]b/", "http://[fe80::1%25a%25b]/", "//["]
)
def test_a_redirect_of_a_node_is_not_followed(connected: Connected, target: str) -> None:
    known = cluster(A)
    known.redirect = target
    (seen,) = look(connected(known)).nodes
    assert seen.silent is not None
    assert "302" in seen.silent.why
    assert known.redirect not in known.asked


def test_nodes_that_hang_or_drip_end_with_the_deadline(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.api_server, "DEADLINE_SECONDS", 0.5)
    known = cluster(A, B)
    known.states["gpu-share-plugin-gpu-a:9407"] = _late
    begin = time.monotonic()
    hanging, fine = look(connected(known)).nodes
    assert (hanging.state, fine.state) == (None, B)
    known.drips = True
    assert [one.state for one in look(connected(known)).nodes] == [None, None]
    assert time.monotonic() - begin < 10


def _late() -> tuple[int, bytes]:
    time.sleep(30)
    return 200, b""


def test_long_lists_come_in_pages(connected: Connected) -> None:
    known = cluster(A, pods=tuple(pod(f"p-{number:03}") for number in range(25)))
    known.page = 10
    assert len(look(connected(known)).pods) == 25
    assert known.asked.count("/api/v1/pods") == 3


def test_denials_of_ours_are_found_each_controller_once_and_none_that_is_old(connected: Connected) -> None:
    ours = 'admission webhook "pods.gpu-share.dev" denied the request: too much'
    events = (
        denial("old words of gpu-share", at=ago(minutes=3)),
        denial(ours),
        denial("exceeded quota: cpu", name="other"),
        denial(ours, name="long-ago", at=ago(hours=1)),
    )
    (found,) = look(connected(cluster(A, events=events))).denials
    assert (found.kind, found.name, found.message, found.count) == ("ReplicaSet", "resnet-5d", ours, 9)


def test_an_event_of_the_newer_api_counts_by_when_it_was_seen_last(connected: Connected) -> None:
    ours = 'admission webhook "pods.gpu-share.dev" denied the request: Container "x" asks for 0.8'
    newer = denial(ours) | {"count": None, "lastTimestamp": None, "eventTime": ago(minutes=45)}
    newer["series"] = {"count": 30, "lastObservedTime": (last := ago(minutes=1))}
    (found,) = look(connected(cluster(A, events=(newer,)))).denials
    assert (found.count, found.last) == (30, last)


def test_a_grant_that_cannot_be_read_leaves_its_pod(connected: Connected) -> None:
    odd = pod("resnet-0")
    odd["metadata"]["annotations"]["gpu-share.dev/grant"] = "{" * 5000
    (seen,) = look(connected(cluster(A, pods=(odd,)))).pods
    assert seen.grant is None


def test_an_api_server_that_is_not_there_is_no_silence(served: Callable[[StandIn], Path]) -> None:
    seen = look(connect(kubeconfig=served(cluster(A)), context="nowhere"))
    assert len(seen.unseen) == 4
    assert all("refused" in one.why for one in seen.unseen)


def test_texts_of_others_are_harmless(connected: Connected) -> None:
    odd = pod("resnet-0", phase="Failed", reason="\u001b[2JX", message="a\nb\u202e" + "c" * 5000)
    (seen,) = look(connected(cluster(A, pods=(odd,)))).pods
    assert seen.why.isprintable()
    assert len(seen.why) < 2200
    assert json.loads(json.dumps(seen.why)).startswith("?[2JX: a b?c")
