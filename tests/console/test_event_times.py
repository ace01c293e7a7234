"""Events as clients write them: each has its time in one of several fields, some with fractions or another zone."""

from typing import Any

import msgspec
import pytest

from console.denials import denials
from console.events import Event
from console.explain.warnings import last, of_now
from console.objects import Pod, PodStatus
from console.words import Shown, as_shown, moment

NONE = {"firstTimestamp": None, "lastTimestamp": None, "eventTime": None, "series": None}
EARLIER = "2026-11-28T10:00:00Z"


def event(message: str, *, created: str = "2026-11-28T08:00:00Z", reason: str = "Failed", **times: Any) -> Event:
    on = {"kind": "ReplicaSet", "namespace": "a", "name": "b"}
    said = {"type": "Warning", "reason": reason, "message": message, "involvedObject": on}
    made: dict[str, Any] = {"metadata": {"creationTimestamp": created}, **said, **NONE, **times}
    return msgspec.convert(made, Event, dec_hook=as_shown)


@pytest.mark.parametrize(
    "later",
    [
        event("later gpu-share", created="2026-11-28T10:00:01Z"),
        event("later gpu-share", created="2026-11-28T07:00:00Z", eventTime="2026-11-28T10:00:00.500000Z"),
        event("later gpu-share", created="2026-11-28T07:00:00Z", lastTimestamp="2026-11-28T09:00:01-02:00"),
    ],
    ids=["created alone", "fraction", "zone"],
)
def test_the_later_event_is_the_newest_in_whichever_field_it_has_its_time(later: Event) -> None:
    earlier = event("earlier gpu-share", lastTimestamp=EARLIER)
    for told in ([earlier, later], [later, earlier]):
        assert last(told) == ("Failed: earlier gpu-share", "Failed: later gpu-share")
        now = moment(EARLIER)
        assert now is not None
        (found,) = denials(told, (), now).ours
        assert found.message == "later gpu-share"


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ({"lastTimestamp": EARLIER}, ("FailedMount: no pipes",)),  # as the kubelet writes it
        ({"eventTime": "2026-11-28T10:00:00.200000Z"}, ()),
        ({"lastTimestamp": "2026-11-28T09:59:59Z"}, ()),
    ],
)
def test_a_warning_in_whole_seconds_may_be_of_the_second_in_which_the_pod_got_its_node(
    at: dict[str, str], told: tuple[str, ...]
) -> None:
    scheduled = event("to gpu-a", type="Normal", reason="Scheduled", eventTime="2026-11-28T10:00:00.300000Z")
    pod = Pod(status=PodStatus(phase=Shown("Pending")))
    assert of_now([scheduled, event("no pipes", reason="FailedMount", **at)], pod) == told
