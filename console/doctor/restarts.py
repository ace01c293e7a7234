"""Parts of gpu-share that end again and again: between two ends the kubelet calls them ready."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from console.doctor.parts import statuses
from console.objects import ContainerStatus, NotRunning, Pod
from console.words import age, moment, several

# As many, and within as long, as the alert GpuSharePartDown has it. A kubelet counts all restarts since the pod was
# made, and tells of the last end alone.
_FEWEST: Final = 3
_RECENT: Final = timedelta(hours=1)
# A restart of the node counts as one too, with an exit code like that of a crash. What ran for so long before is ended
# by that, or by a fault that comes back so seldom that there is no hurry.
_LONG_RUN: Final = timedelta(hours=12)


class Restarted(NamedTuple):
    """A container that ended again and again, and not long ago."""

    sentence: str
    hint: str  # where to read why


def restarted(pods: list[Pod], now: datetime) -> list[Restarted]:
    """List the containers of *pods* that end again and again; an end with exit code 0 is on purpose, and is none."""
    return [one for pod in pods for one in _of(pod, now)]


def hints(*before: str, of: list[Restarted]) -> str:
    """Join what to do: *before*, and of what was restarted the first, as the others are looked at alike."""
    return "; ".join((*before, *(one.hint for one in of[:1])))


def _of(pod: Pod, now: datetime) -> Iterator[Restarted]:
    for one in statuses(pod):
        end = one.state.terminated or one.last_state.terminated
        if end is not None and _is_again(one, end, now):
            yield Restarted(_sentence(pod, one, end, now), _hint(pod, one))


def _is_again(one: ContainerStatus, end: NotRunning, now: datetime) -> bool:
    began, ended = moment(end.started_at), moment(end.finished_at)
    if one.restart_count < _FEWEST or end.exit_code == 0 or ended is None:
        return False
    ran_long = began is not None and ended - began >= _LONG_RUN
    # An end in the future is by a node's clock that is ahead, and no older than that is: it counts.
    return now - ended <= _RECENT and not ran_long


def _sentence(pod: Pod, one: ContainerStatus, end: NotRunning, now: datetime) -> str:
    why = ": ".join(filter(None, (end.reason, end.message)))
    code = "" if end.exit_code is None else f"exit code {end.exit_code}"
    return (
        f"container {one.name} of {pod.metadata.name} on {pod.spec.node_name or 'no node'} was restarted "
        f"{several(one.restart_count, 'time')}, and ended last {age(end.finished_at, now)} ago: "
        f"{', '.join(filter(None, (code, why)))}"
    )


def _hint(pod: Pod, one: ContainerStatus) -> str:
    logs = f"kubectl -n gpu-share logs {pod.metadata.name} -c {one.name} --previous"
    return f"{logs}; OOMKilled is for want of memory, by its limit or on the node"
