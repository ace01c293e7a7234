"""What could not be asked is told as not known, whether a right is missing or the API server has too much to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpu_share import main
from tests.console.explained import OURS, explain, known, only
from tests.console.objects import cluster, denial, gpu, pending, pod, state
from tests.console.stand_in import Reply, StandIn, status_of
from tests.console.test_doctor import installed

Asked = Callable[..., Result]
_PODS = "/api/v1/namespaces/gpu-share/pods"
_STATE = f"{_PODS}/gpu-share-plugin-gpu-a:9407/proxy/state"
_PROXY = 'pods "gpu-share-plugin-gpu-a:9407" is forbidden: User "viewer" cannot get resource "pods/proxy"'
_DENIED = status_of(403, "pods is forbidden")
_FORBIDDEN = status_of(403, f'{_PROXY}; User "viewer" cannot create resource "pods"')
_BUSY = status_of(429, "too many requests")
_SILENT = pytest.mark.parametrize(
    ("path", "answer"), [(_PODS, _DENIED), (_PODS, _BUSY), (_STATE, status_of(403, _PROXY)), (_STATE, _BUSY)]
)


@_SILENT
def test_of_a_node_that_cannot_be_asked_no_number_of_gpus_is_told(asked: Asked, path: str, answer: Reply) -> None:
    on = cluster(state(gpu()), pods=(pod("a"),))
    on.raw[path] = answer
    text = asked(on, "top", "--once").stdout
    assert text.startswith("here  1 node, - GPUs  ")
    assert "! nothing is known of its GPUs: " in text
    assert "no part of gpu-share runs there" not in text
    assert text.count("? not seen: ") == 1


@_SILENT
def test_programs_are_told_that_its_gpus_are_not_known(shown: Callable[..., Any], path: str, answer: Reply) -> None:
    on = cluster(state(gpu()))
    on.raw[path] = answer
    (node,) = shown(on, "top")["nodes"]
    assert (node["gpus"], node["gpus_known"]) == ([], False)
    assert node["trouble"].startswith("nothing is known of its GPUs: ")


def test_numbers_are_at_least_those_of_the_nodes_that_answer(asked: Asked) -> None:
    on = cluster(state(gpu()), state(gpu(), on="gpu-b"))
    assert "2 nodes, 2 GPUs, largest share that fits: 1 " in asked(on, "top", "--once").stdout
    on.raw[_STATE] = _BUSY
    assert "2 nodes, at least 1 GPU, largest share that fits: at least 1 " in asked(on, "top", "--once").stdout


@_SILENT
def test_a_pod_that_waits_is_not_told_that_such_a_node_has_no_gpu(asked: Asked, path: str, answer: Reply) -> None:
    on = known(pending("late", "0.2", "0/1 nodes are available: 1 Insufficient cpu."))
    on.raw[path] = answer
    text = explain(asked, on, "late")
    assert "    gpu-a: nothing is known of its GPUs: " in text
    assert "no GPU to share" not in text


@pytest.mark.parametrize("answer", [_DENIED, _BUSY])
def test_no_event_is_said_to_be_missing_where_none_can_be_read(asked: Asked, answer: Reply) -> None:
    on = known()
    only(on, "apps/v1/namespaces/team-vision/deployments/resnet")
    on.lists[f"{OURS}/events"] = [denial("gpu-share: too much")]
    on.raw[f"{OURS}/events"] = answer
    text = explain(asked, on, "deploy/resnet")
    assert "    it has no pods, and the events that would say why cannot be read: " in text
    assert "no event says" not in text
    assert "    events in namespace team-vision: " in text.partition("Not seen")[2]


def test_events_of_a_pod_that_cannot_be_read_are_not_seen(asked: Asked) -> None:
    on = known(pod("resnet-0"))
    on.raw[f"{OURS}/events"] = _BUSY
    assert "    events in namespace team-vision: too many requests\n" in explain(asked, on, "resnet-0")


def asked_for(on: StandIn) -> list[str]:
    """List what doctor asks an API server for."""
    return sorted({*on.asked, *(path.partition("?")[0] for path, _ in on.sent)})


def statuses(asked: Asked, on: StandIn) -> dict[str, str]:
    return {one["check"]: one["status"] for one in json.loads(asked(on, "doctor", "-o", "json").stdout)}


@pytest.mark.parametrize("answer", [_FORBIDDEN, _BUSY])
def test_doctor_calls_nothing_odd_or_wrong_for_not_being_answered(asked: Asked, answer: Reply) -> None:
    well = installed()
    assert {"warning", "failure", "unknown"}.isdisjoint(statuses(asked, well).values())
    called = []
    for path in asked_for(well):
        on = installed()
        on.raw[path] = answer
        on.posted = {one: on.raw.get(one, otherwise) for one, otherwise in on.posted.items()}
        found = statuses(asked, on)
        called += [f"{path}: {check}: {status}" for check, status in found.items() if status in ("warning", "failure")]
    assert called == []


def test_where_no_thread_can_be_had_it_is_one_line(
    served: Callable[[StandIn], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: object) -> None:
        raise RuntimeError("can't start new thread")

    kubeconfig = served(installed())
    monkeypatch.setattr("threading.Thread.start", start)
    ended = CliRunner().invoke(main, ["top", "--once", "--kubeconfig", str(kubeconfig)])
    assert (ended.exit_code, ended.output.count("\n")) == (1, 1)
    assert ended.output.startswith("gpu-share: no thread can be started: raise the limit of memory")


@pytest.mark.parametrize("words", [("top", "--once"), ("explain", "late")])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((302, b""), "HTTP 302 Found, no redirect is followed"),
        ((307, b"<a href='/login'>moved</a>"), "HTTP 307 Temporary Redirect, no redirect is followed"),
        ((502, b""), "HTTP 502 Bad Gateway, without a reason"),
    ],
)
def test_what_answers_without_words_in_place_of_an_api_server_is_told_with_what_to_do(
    asked: Asked, answer: Reply, said: str, words: tuple[str, ...]
) -> None:
    ran = asked(Always(answer), *words)
    assert ran.exit_code == 1
    assert f"{said}: is http://127.0.0.1:" in ran.stderr
    assert ran.stderr.endswith(" the API server? Check the server of the kubeconfig\n")


def test_of_a_node_behind_the_api_server_no_kubeconfig_is_checked(asked: Asked) -> None:
    on = cluster(state(gpu()))
    on.raw[_STATE] = (302, b"")
    text = asked(on, "top", "--once").stdout
    assert "gpu-share-plugin-gpu-a: HTTP 302 Found, no redirect is followed\n" in text


class Always(StandIn):
    """Something else than an API server, which answers everything in one way."""

    def __init__(self, answer: Reply) -> None:
        super().__init__()
        self._answer = answer

    def reply(self, _path: str, _query: object) -> Reply:
        return self._answer
