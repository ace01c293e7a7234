"""Lists of objects as tenants can make them: with null in place of lists that are empty, and very large."""

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from kubernetes import client

import console.api_server
from console.api_server import ApiServer
from console.look import look
from console.objects import Object as Named
from tests.console.objects import cluster, gpu, pod, state
from tests.console.stand_in import StandIn
from tests.serving import serving

Connected = Callable[[StandIn], ApiServer]


@pytest.mark.parametrize(
    "given",
    [
        {
            "volumes": [{"name": "all", "projected": {"sources": None, "defaultMode": 420}}]
        },  # as the API server gives it
        {"volumes": None, "initContainers": None, "schedulerName": None},
        {"containers": [{"name": "main", "args": None, "env": [{"name": "A", "value": None}], "resources": None}]},
    ],
)
def test_a_pod_with_null_in_place_of_what_it_does_not_have_is_seen_as_any_other(
    connected: Connected, given: dict[str, object]
) -> None:
    one, other = pod("one"), pod("other")
    one["spec"].update(given)
    seen = look(connected(cluster(state(gpu()), pods=(one, other))))
    assert (seen.unseen, [found.name for found in seen.pods]) == ((), ["one", "other"])


@pytest.mark.parametrize("answer", [{}, {"kind": "Status", "metadata": {}}])
def test_what_is_no_list_is_not_one_of_nothing(connected: Connected, answer: dict[str, object]) -> None:
    known = cluster(state(gpu()))
    known.raw["/api/v1/pods"] = (200, json.dumps(answer).encode())
    (unseen,) = look(connected(known)).unseen
    assert (unseen.what, unseen.why[:24]) == ("pods with a share", "no list at /api/v1/pods:")


@pytest.mark.parametrize(
    "answer", [{"items": None}, {"items": []}, {"kind": "PodList"}, {"kind": "List", "items": None}]
)
def test_a_list_of_nothing_is_one(connected: Connected, answer: dict[str, object]) -> None:
    known = cluster(state(gpu()))
    known.raw["/api/v1/pods"] = (200, json.dumps(answer).encode())
    assert look(connected(known)).unseen == ()


def large(name: str, mebibytes: int) -> dict[str, Any]:
    one = pod(name)
    one["metadata"]["annotations"]["filler"] = "x" * (mebibytes << 20)
    return one


def test_large_objects_come_in_smaller_pages_and_the_others_in_large_ones_again(connected: Connected) -> None:
    known = cluster(
        state(gpu()), pods=(*(large(f"large-{n}", 30) for n in range(3)), *(pod(f"{n:03}") for n in range(200)))
    )
    seen = look(connected(known))
    assert (seen.unseen, len(seen.pods)) == ((), 203)
    assert known.asked.count("/api/v1/pods") < 15


def test_an_object_that_is_too_large_by_itself_is_a_list_that_is_not_seen(connected: Connected) -> None:
    (unseen,) = look(connected(cluster(state(gpu()), pods=(large("one", 65),)))).unseen
    assert (unseen.what, unseen.why) == ("pods with a share", "the answer is larger than 67108864 bytes")


class _Stalling(BaseHTTPRequestHandler):
    """Sends much of a large answer, and no more of it; one of fewer objects comes at once."""

    def do_GET(self) -> None:
        whole = b'{"items": [{"metadata": {"name": "one"}}]}'
        is_large = "limit=500" in self.path
        self.send_response(200)
        self.send_header("Content-Length", str(4 << 20 if is_large else len(whole)))
        self.end_headers()
        self.wfile.write(b" " * (2 << 20) if is_large else whole)
        time.sleep(2 if is_large else 0)

    def log_message(self, *_: object) -> None:
        pass


def test_a_large_answer_that_stalls_comes_in_smaller_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.api_server, "DEADLINE_SECONDS", 0.5)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), _Stalling)) as port:
        api = ApiServer(client.Configuration(host=f"http://127.0.0.1:{port}"))
        assert [str(one.metadata.name) for one in api.all(Named, "/api/v1/pods")] == ["one"]
