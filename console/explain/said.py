"""Who says what of a pod: Kubernetes, or a program in it, whose last words may be anything."""

from collections.abc import Iterator
from typing import Final

from console.objects import ContainerStatus, NotRunning, Pod

_NEVER_RAN: Final = ("StartError", "ContainerCannotRun")  # reasons under which the message is the container runtime's


def by_kubernetes(pod: Pod) -> tuple[str, ...]:
    """List what the scheduler, the kubelet and the container runtime say of a pod that does not run as it should."""
    return tuple(one for one in _by_kubernetes(pod) if one)


def by_programs(pod: Pod) -> tuple[str, ...]:
    """List what programs said when they ended, by a file of theirs or the end of their log."""
    ends = (one for status in statuses(pod) for one in _ended(status))
    return tuple(one.message for one in ends if one.message and one.reason not in _NEVER_RAN)


def statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    """All containers of a pod, as they are."""
    return (*pod.status.init_container_statuses, *pod.status.container_statuses)


def _by_kubernetes(pod: Pod) -> Iterator[str]:
    status = pod.status
    yield _sentence(status.reason, status.message)
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            yield condition.message or condition.reason
    for container in statuses(pod):
        if (held := container.state.waiting) is not None:
            yield _sentence(held.reason, held.message)
        for end in _ended(container):
            yield _sentence(end.reason, end.message if end.reason in _NEVER_RAN else "")


def _ended(status: ContainerStatus) -> Iterator[NotRunning]:
    yield from (one for one in (status.state.terminated, status.last_state.terminated) if one is not None)


def _sentence(reason: str, message: str) -> str:
    return ": ".join(filter(None, (reason, message)))
