"""A clock of this machine that is not the API server's, which wrote the times of what is judged."""

import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from time import monotonic
from typing import Any

import pytest

from console.api_server import ApiServer, UnseenError
from console.look import look, look_at_nodes
from console.words import moment
from tests.console.explained import OURS, Asked, explain, known, only
from tests.console.installations import ca
from tests.console.objects import ago, cluster, denial, gpu, pod, state
from tests.console.stand_in import Object, StandIn
from tests.manifests.admission import BASE

Connected = Callable[[StandIn], ApiServer]
Shown = Callable[..., Any]
HOUR = timedelta(hours=1)
_OURS = 'admission webhook "pods.gpu-share.dev" denied the request: too much'
_HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gpu-share"


def date(ahead: timedelta) -> str:
    """What a clock says that is so far *ahead* of the one here, as an HTTP date."""
    return format_datetime(datetime.now(UTC) + ahead, usegmt=True)


def by(ahead: timedelta, known: StandIn) -> StandIn:
    """Have an API server whose clock is so far *ahead* of the one here."""
    known.date = lambda _: date(ahead)
    return known


def apart(at: str) -> timedelta:
    """How far a time is ahead of the clock here, in whole minutes."""
    seen = moment(at)
    assert seen is not None
    return timedelta(minutes=round((seen - datetime.now(UTC)).total_seconds() / 60))


def doctor(shown: Shown, on: StandIn, check: str) -> tuple[str, str]:
    (found,) = (one for one in shown(on, "doctor") if one["check"] == check)
    return found["status"], "; ".join(found["found"])


def slow(minutes: float, **status: Any) -> Object:
    """A pod that is as it is for so many minutes of the clock here."""
    since = ago(minutes=minutes)
    ready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": since}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
    made = pod("slow", conditions=[scheduled, ready], **status)
    made["metadata"]["creationTimestamp"] = since
    return made


@pytest.mark.parametrize(("ahead", "count"), [(-HOUR, 1), (HOUR, 0)])
def test_which_denials_are_recent_goes_by_the_clock_of_the_api_server(
    connected: Connected, ahead: timedelta, count: int
) -> None:
    event = denial(_OURS, at=ago(minutes=61 if count else 1))
    seen = look(connected(by(ahead, cluster(state(gpu()), events=(event,)))))
    assert (len(seen.denials), apart(seen.at)) == (count, ahead)


def test_so_does_what_explain_says_was_denied(asked: Asked) -> None:
    on = by(-HOUR, known())
    on.lists[f"{OURS}/events"] = [denial(_OURS, at=ago(minutes=61))]
    only(on, "apps/v1/namespaces/team-vision/deployments/resnet")
    assert f"ReplicaSet resnet-5d, 9 times: {_OURS}" in explain(asked, on, "deploy/resnet")


@pytest.mark.parametrize("status", [{"phase": "Pending"}, {"phase": "Running"}], ids=["starts", "not ready"])
def test_so_does_for_how_long_a_pod_has_been_as_it_is(shown: Shown, asked: Asked, status: dict[str, str]) -> None:
    def on(minutes: float, ahead: timedelta) -> StandIn:
        return by(ahead, cluster(state(gpu()), pods=(slow(minutes, **status),)))

    assert doctor(shown, on(-15, HOUR), "pods-run")[0] == "warning"
    assert doctor(shown, on(60.5, -HOUR), "pods-run")[0] != "warning"
    assert " 45 min " in asked(on(-15, HOUR), "top", "--once").stdout


def test_so_do_the_ends_of_certificates(shown: Shown) -> None:
    (hooks,) = (one for one in BASE if one["kind"] == "MutatingWebhookConfiguration")
    bundle = {"caBundle": b64encode(ca(20)).decode()}
    for days, told in ((15, True), (0, False)):
        on = by(timedelta(days=days), cluster(state(gpu())))
        content = {**hooks, "webhooks": [{**one, "clientConfig": bundle} for one in hooks["webhooks"]]}
        on.raw[_HOOKS] = (200, json.dumps(content).encode())
        assert ("the CA expires at" in doctor(shown, on, "certificates")[1]) is told


def test_the_clock_of_a_node_that_answers_through_the_proxy_is_not_that_of_the_api_server(connected: Connected) -> None:
    on = cluster(state(gpu()))
    on.date = lambda path: date(HOUR if "/proxy/" in path else -HOUR)
    assert apart(look(connected(on)).at) == -HOUR


def test_an_answer_about_a_namespace_named_proxy_says_the_time_too(connected: Connected) -> None:
    api, began_seconds = connected(by(-HOUR, cluster(state(gpu())))), monotonic()
    with suppress(UnseenError):  # it is not there, which is an answer
        api.get("/api/v1/namespaces/proxy/pods")
    assert api.clock.since(began_seconds).ahead_seconds == pytest.approx(HOUR.total_seconds(), abs=30)


def test_of_answers_that_somebody_has_kept_the_newest_time_counts(connected: Connected) -> None:
    on = cluster(state(gpu()))
    on.date = lambda path: date(HOUR if path.startswith("/api/v1/nodes") else -HOUR)
    assert apart(look(connected(on)).at) == HOUR
    assert apart(look_at_nodes(connected(on)).at) == HOUR


def test_each_look_goes_by_what_is_said_while_it_lasts(connected: Connected) -> None:
    on = by(HOUR, cluster(state(gpu())))
    api = connected(on)
    assert apart(look(api).at) == HOUR
    by(-HOUR, on)
    assert apart(look(api).at) == -HOUR


@pytest.mark.parametrize(
    "said", ["", "soon", "Fri, 31 Dec 9999 23:59:59 -0500", "Sat, 01 Jan 1600 00:00:00 GMT", "0"], ids=str
)
def test_where_no_time_is_said_the_clock_here_holds(connected: Connected, said: str) -> None:
    on = cluster(state(gpu()))
    on.date = lambda _: said
    seen = look(connected(on))
    assert (apart(seen.at), seen.ahead_seconds, seen.unseen) == (timedelta(), 0.0, ())


def test_doctor_says_by_how_much_the_clocks_differ_where_that_is_more_than_a_minute(asked: Asked) -> None:
    def says(ahead: timedelta) -> str:
        ran = asked(by(ahead, cluster(state(gpu()))), "doctor")
        return str(ran.stdout).splitlines()[1]

    what = "! this machine's clock is {} the API server's, by which all times here count: set the one that is wrong"
    assert says(-HOUR) == what.format("1 h ahead of")
    assert says(timedelta(minutes=5, seconds=30)) == what.format("5 min behind")
    assert says(timedelta(seconds=50)) == ""
