"""Warnings in the events of a pod: those that still say what is wrong, and none of what is over."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from console.events import Event
from console.explain.said import statuses
from console.objects import Pod

_MOST: Final = 5
_SCHEDULING: Final = "FailedScheduling"
# Before the first container of a pod is created.
_PREPARING: Final = (
    *(_SCHEDULING, "FailedAttachVolume", "FailedMount", "FailedMapVolume"),
    *("FailedPrepareDynamicResources", "FailedCreatePodSandBox", "NetworkNotReady"),
)
_PREPARED_BY: Final = ("Scheduled", "Pulling", "Pulled", "Created", "Started")  # each ends what was in the way before
_TO_BE_CREATED: Final = ("", "ContainerCreating", "PodInitializing")
NOT_ABOUT_START: Final = (_SCHEDULING, "BackOff", "Unhealthy")  # warnings, and very many of them


def in_words(event: Event) -> str:
    """Write what an event says."""
    return f"{event.reason}: {event.message}"


def last(events: Iterable[Event]) -> tuple[str, ...]:
    """Say the last few warnings, the newest at the end."""
    return tuple(in_words(one) for one in _sorted(events) if one.type == "Warning")[-_MOST:]


def of_now(events: Iterable[Event], pod: Pod) -> tuple[str, ...]:
    """Say the last few warnings about what is still in the way of a pod, the newest at the end."""
    if pod.status.phase not in ("Pending", "Failed"):
        return ()
    told = _sorted(events)
    since = max((one.order for one in told if one.reason in _PREPARED_BY), default=None)
    over = _PREPARING if _is_prepared(pod) else (_SCHEDULING,) if pod.spec.node_name else ()
    return last(one for one in told if one.reason not in over and (since is None or _is_since(one, since)))


def _is_since(event: Event, since: datetime) -> bool:
    """Whether it may be as late: the kubelet writes whole seconds, the scheduler fractions."""
    at = event.order
    return at >= (since if at.microsecond else since.replace(microsecond=0))


def _is_prepared(pod: Pod) -> bool:
    """Whether the kubelet has come as far as to create a container."""
    return any(
        one.state.terminated is not None
        or one.last_state.terminated is not None
        or (one.state.waiting is not None and one.state.waiting.reason not in _TO_BE_CREATED)
        for one in statuses(pod)
    )


def _sorted(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda one: one.order)
