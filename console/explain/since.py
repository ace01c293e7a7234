"""Since when a pod is as it is, as far as it tells."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from console.objects import Metadata, Pod
from console.seen import DISRUPTED, SeenPod
from console.words import age, moment
from program.duration import duration

_OVER: Final = ("Succeeded", "Failed")
_LONGEST_SECONDS: Final = 10**9


def since(pod: SeenPod, now: datetime) -> str:
    """Say for how long a pod has its phase, or how long ago it was created where its phase does not say."""
    metadata = pod.pod.metadata
    if (deleted := _deleted_at(metadata)) is not None:
        return f" for {duration((now - deleted).total_seconds())}"
    if pod.phase not in _OVER:
        return f" for {age(metadata.creation_timestamp, now)}"
    if at := ended_at(pod.pod):
        return f" for {age(at, now)}"
    return f", created {age(metadata.creation_timestamp, now)} ago"


def ended_at(pod: Pod) -> str:
    """Say when the last container of a pod ended, or when it was evicted; empty if it does not tell."""
    ends = (one.state.terminated for one in pod.status.container_statuses)
    times = [one.finished_at for one in ends if one is not None and one.finished_at]
    evicted = (one.last_transition_time for one in pod.status.conditions if one.type == DISRUPTED)
    return max(times or [one for one in evicted if one], default="")


def ending(pod: SeenPod, now: datetime) -> Iterator[str]:
    """Say what a pod waits for that is being deleted."""
    metadata = pod.pod.metadata
    until = moment(metadata.deletion_timestamp)
    if until is None:
        return
    left_seconds = (until - now).total_seconds()
    if left_seconds > 0:
        yield f"it is being deleted, and its containers have {duration(left_seconds)} left to end"
    elif metadata.finalizers:
        yield f"it is being deleted, and finalizers keep it: {', '.join(metadata.finalizers)}"
    else:
        late = duration(-left_seconds)
        yield f"it is being deleted, and its containers should have ended {late} ago: look at its node and the kubelet"


def _deleted_at(metadata: Metadata) -> datetime | None:
    """Say when somebody deleted a pod: it says when the time is over that its containers then have."""
    until = moment(metadata.deletion_timestamp)
    return until and until - timedelta(seconds=min(metadata.deletion_grace_period_seconds or 0, _LONGEST_SECONDS))
