"""What answers `gpu-share doctor` in place of an API server, or of the webhook."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.console.stand_in import Reply
from tests.console.test_doctor import installed

_PAGE = b"<html><title>Sign in</title></html>"
_PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("answer", "said"),
    [((200, _PAGE), ": the answer is not understood"), ((200, b"[1]"), ""), ((302, b""), ", got HTTP 302 Found")],
)
@pytest.mark.parametrize("words", [(), ("--pre",), ("-o", "json")])
def test_what_is_no_api_server_is_told_as_that(
    asked: Callable[..., Result], answer: Reply, said: str, words: tuple[str, ...]
) -> None:
    known = installed()
    known.raw["/version"] = answer
    ran = asked(known, "doctor", *words)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("gpu-share doctor: expected an API server at http://127.0.0.1:")
    assert said in ran.stderr


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
