"""The pods of gpu-share itself: which of them are to run, whether they do, and why not."""

from typing import Final

from console.doctor.installation import Installation
from console.objects import ContainerStatus, Pod
from console.seen import COMPONENT_LABEL, ON_NODES, Seen

COMPONENTS: Final = ("webhook", "certs", *ON_NODES)
_BEHIND: Final = "PodInitializing"


def component_of(pod: Pod) -> str:
    """Name what a pod is of COMPONENTS."""
    return pod.metadata.labels.get(COMPONENT_LABEL, "")


def parts(seen: Seen, *components: str) -> list[Pod]:
    """List those of *components* that are to run."""
    return [one for one in seen.parts_to_run if component_of(one) in components]


def no_parts(on: Installation) -> str:
    """Say that no pod of gpu-share is to run, where that is so."""
    return "" if parts(on.seen, *COMPONENTS) else "no pod of gpu-share is to run"


def is_ready(pod: Pod) -> bool:
    """Whether it serves; of a node that is gone the containers are as they were, and the condition is not."""
    status = pod.status
    if any(one.type == "Ready" and one.status != "True" for one in status.conditions):
        return False
    ready = [one.ready for one in status.container_statuses]
    return status.phase == "Running" and bool(ready) and all(ready)


def statuses(pod: Pod) -> tuple[ContainerStatus, ...]:
    """Say how its containers are, those first that the others wait for; what is done is left out of these."""
    first = [one for one in pod.status.init_container_statuses if not _is_done(one)]
    return (*first, *pod.status.container_statuses)


def trouble(pod: Pod) -> str:
    """Say why it does not serve, as far as Kubernetes does: what holds it up now, or what ended it before."""
    known = statuses(pod)
    now = [one.state.waiting or one.state.terminated for one in known]
    before = [one.last_state.terminated for one in known if not one.ready]
    held = [one for one in now if one is not None]
    # The containers behind one that is to run first wait for it, and say no more.
    told = [one for one in held if one.reason != _BEHIND] + [one for one in before if one is not None] + held
    return ": ".join(filter(None, (told[0].reason, told[0].message))) if told else str(pod.status.phase)


def _is_done(one: ContainerStatus) -> bool:
    ended = one.state.terminated
    return ended is not None and ended.reason == "Completed"
