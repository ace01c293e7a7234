"""
What becomes of what is held when a container gets what an init container of its pod had.

The kubelet lets it have the vGPUs of init containers that end before it starts, any of them. It may be on other GPUs
than they: each GPU then stays held for both, since nobody says which of the two runs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from plugin.device_plugin.holder import Holder


def pod_of(ids: Iterable[str], held: Mapping[str, Holder], *, number: int) -> int:
    """
    Number the pod of a container that gets *ids* by the answer of this number: as that of whose init containers it has.

    The kubelet admits one pod after the other: whoever had an answer before the last one is of another pod.
    """
    own = {one.pod for text in ids if (one := held.get(text)) and one.container is None}
    own &= {one.pod for one in held.values() if one.call == number - 1}
    # One that was named may have ended, and what is of its pod ends when that is seen.
    own -= {one.pod for one in held.values() if one.container is not None}
    return max(own, default=0) or number


def left_by_init_containers(reused: Mapping[str, Holder], held: Mapping[str, Holder]) -> dict[str, Holder]:
    """
    Find all that is left of the init containers of which a container gets the vGPUs *reused*, these too.

    Whoever had one of them has ended by the time at which the container starts, or it would not get it. What of an init
    container a sidecar or another container has by now was part of a later allocation.
    """
    calls = {one.call for one in reused.values()} - {0}
    return {text: one for text, one in held.items() if text in reused or one.call in calls}


def taken_over(left: Mapping[str, Holder], on: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """
    Say on which GPUs vGPUs are when a container has those in *on*, by ID and UUID, and *left* is of init containers.

    Each GPU stays held by as many vGPUs as the init containers had there, or the container has, if that is more: by
    those that they had there, since the kubelet has these for as long as their pod may run, whatever becomes of the
    rest. The first GPU of each vGPU is the one that it is on.
    """
    rest = {text: one.gpu for text, one in left.items() if one.gpu and text not in on}
    owed = Counter(gpu for one in left.values() if one.gpu for gpu in (one.gpu, *one.also))
    owed -= Counter(on.values()) + Counter(rest.values())
    found: dict[str, tuple[str, ...]] = {text: (gpu,) for text, gpu in (*on.items(), *rest.items())}
    for text, gpus in found.items():  # those of the container first: of the rest it may turn out that nobody has it
        for gpu in (left[text].gpu, *left[text].also) if text in left else ():
            if owed[gpu] > 0 and gpu not in gpus:
                found[text] += (gpu,)
                owed[gpu] -= 1
    return found
