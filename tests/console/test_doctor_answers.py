"""What answers `gpu-share doctor` in place of an API server, or of the webhook."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import Result

from tests.console.stand_in import Reply, StandIn, status_of
from tests.console.test_doctor import installed

_PAGE = b"<html><title>Sign in</title></html>"
_PODS = "/api/v1/namespaces/default/pods"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_BAD_GATEWAY = b"<html>\n<head><title>502 Bad Gateway</title></head>\n</html>"
_BUSY = status_of(429, "too many requests, please try again later")
_NO_LEADER = status_of(500, "etcdserver: leader changed")
_SHUTS_DOWN = status_of(503, "apiserver is shutting down")
WORDS = pytest.mark.parametrize("words", [(), ("--pre",), ("-o", "json")])


@dataclass
class Failing(StandIn):
    """Answers the same to whatever is asked, but /version where it serves that."""

    answer: Reply = (0, b"")
    serves_version: bool = False

    def __post_init__(self) -> None:
        """Answer to what is posted as well."""
        self.posted = {_PODS: self.answer, _REVIEWS: self.answer}

    def reply(self, path: str, _: object) -> Reply:
        """Answer it."""
        version = json.dumps({"gitVersion": "v1.36.2"}).encode()
        return (200, version) if self.serves_version and path == "/version" else self.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [((200, _PAGE), ": the answer is not understood"), ((200, b"[1]"), ""), ((302, b""), ", got HTTP 302 Found")],
)
@WORDS
def test_what_is_no_api_server_is_told_as_that(
    asked: Callable[..., Result], answer: Reply, said: str, words: tuple[str, ...]
) -> None:
    known = installed()
    known.raw["/version"] = answer
    ran = asked(known, "doctor", *words)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("gpu-share doctor: expected an API server at http://127.0.0.1:")
    assert said in ran.stderr


@WORDS
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((502, _BAD_GATEWAY), ", got HTTP 502 Bad Gateway: <html>"),
        ((503, _BAD_GATEWAY), ", got HTTP 503 Service Unavailable: <html>"),
        ((500, b""), ", got HTTP 500"),
        ((429, b""), ", got HTTP 429"),
        ((404, b"404 page not found\n"), ", got HTTP 404 Not Found: 404 page not found"),
        ((403, _BAD_GATEWAY), ", got HTTP 403"),
        ((400, _BAD_GATEWAY), ", got HTTP 400"),
    ],
)
def test_a_load_balancer_without_an_api_server_is_told_as_that(
    asked: Callable[..., Result], answer: Reply, said: str, words: tuple[str, ...]
) -> None:
    ran = asked(Failing(answer=answer), "doctor", *words)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


@WORDS
@pytest.mark.parametrize(
    ("answer", "serves_version"),
    [
        *((answer, serves) for answer in (_NO_LEADER, _BUSY, _SHUTS_DOWN) for serves in (True, False)),
        ((502, _BAD_GATEWAY), True),
        ((404, b"404 page not found\n"), True),
    ],
)
def test_where_nothing_is_answered_but_perhaps_the_version_the_exit_code_is_1(
    asked: Callable[..., Result], answer: Reply, words: tuple[str, ...], *, serves_version: bool
) -> None:
    ran = asked(Failing(answer=answer, serves_version=serves_version), "doctor", *words)
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert "failed" not in ran.stdout.splitlines()[-1]
    assert "look at the pod that should answer" not in ran.stdout


@WORDS
@pytest.mark.parametrize("serves_version", [True, False])
def test_who_may_see_nothing_is_told_the_rights_and_nothing_has_failed(
    asked: Callable[..., Result], words: tuple[str, ...], *, serves_version: bool
) -> None:
    forbidden = status_of(403, 'it is forbidden: User "viewer" cannot create resource "pods"')
    ran = asked(Failing(answer=forbidden, serves_version=serves_version), "doctor", *words)
    assert (ran.exit_code, ran.stderr) == (0, "")


@pytest.mark.parametrize("status", [200, 201, 302, 404])
def test_a_page_in_place_of_an_answer_is_no_pod_that_was_admitted(shown: Callable[..., Any], status: int) -> None:
    known = installed()
    known.posted[_PODS] = (status, _PAGE)
    (found,) = (one for one in shown(known, "doctor") if one["check"] == "webhook-answers")
    assert found["status"] == "unknown"


def test_a_pod_that_was_admitted_is_told(shown: Callable[..., Any]) -> None:
    known = installed()
    known.posted[_PODS] = (201, b'{"kind": "Pod", "metadata": {"name": "gpu-share-doctor-x"}}')
    (found,) = (one for one in shown(known, "doctor") if one["check"] == "webhook-answers")
    assert (found["status"], found["found"]) == (
        "warning",
        ["a pod with an invalid share was admitted in namespace default"],
    )
