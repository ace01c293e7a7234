"""Whether a pod waits for what the policies grant no more: only a new pod helps then."""

from collections.abc import Iterable

from console.explain.subject import Subject
from policies.contract import DRA
from policies.device_names import device_name
from policies.grant import Grant
from policies.sizes import read_size

_DELETE = "delete the pod, so that the next one is granted anew (docs/operations.md#change-a-policy)"


def granted_otherwise(subject: Subject) -> str:
    """Say that a pod waits for what the policies grant no more; empty if they would grant the same."""
    before, now = subject.pod.grant, subject.decision
    if not subject.pod.waits or before is None or not isinstance(now, Grant):
        return ""
    by_dra, is_by_dra = before.allocation == DRA, now.allocation == DRA
    if (before.strategy, by_dra) != (now.strategy, is_by_dra):
        how, by = f"{before.strategy}{' by dra' * by_dra}", f"{now.strategy}{' by dra' * is_by_dra}"
        return f"it was granted a share under {how}, and its policy says {by} by now: {_DELETE}"
    had = _kinds((one.resource or before.resource for one in before.containers.values()), by_dra=by_dra)
    has = _kinds((one.resource for one in now.containers), by_dra=by_dra)
    if had != has and "" not in had:
        kinds, kinds_of_now = ", ".join(sorted(had)), ", ".join(sorted(has))
        return f"it was granted {kinds}, and would be granted {kinds_of_now} by now: {_DELETE}"
    number = now.vgpus_per_gpu
    one = next((one for one in before.containers.values() if one.of not in (None, number)), None)
    if by_dra or one is None:
        return ""
    return f"it was granted {one.vgpus} of {one.of} vGPUs, and a GPU is divided into {number} by now: {_DELETE}"


def _kinds(resources: Iterable[str], *, by_dra: bool) -> set[str]:
    """List of what GPUs they are: by DRA each resource is of a size and a device, else of GPUs of one kind."""
    if not by_dra:
        return set(resources)
    sizes = [read_size(one) for one in resources]
    return {f"shares of {device_name(one.device)}" if one is not None else "" for one in sizes}
