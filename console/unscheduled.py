"""Pods of which no scheduler has said anything: where none of that name runs, they wait for ever."""

from typing import Final

from console.seen import SeenPod
from console.words import Shown

_DEFAULT: Final = "default-scheduler"  # as the API server writes it into pods that name none


def unscheduled(pod: SeenPod) -> str:
    """Say what to look at where a pod waits and nothing says why; empty where something does, or it has a node."""
    is_told = pod.why or any(one.type == "PodScheduled" for one in pod.pod.status.conditions)
    if is_told or not pod.waits:
        return ""
    name = pod.pod.spec.scheduler_name or Shown(_DEFAULT)
    return f"no scheduler has said anything of it: see that one runs whose name is {name}, its schedulerName"
