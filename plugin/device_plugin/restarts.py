"""What becomes of what is held when the kubelet starts anew, or the machine."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from plugin.device_plugin.holder import ENDED_OR_NOT, Holder
from plugin.device_plugin.kubelet_record import KubeletRecord


def of_earlier_kubelet(held: Mapping[str, Holder], record: KubeletRecord, *, is_first: bool) -> dict[str, Holder]:
    """
    Give what is held to a kubelet that has just started: it has yet to name it, and may have lost its checkpoint.

    That is so if the first file that is seen of it, in *record*, has nothing of what an earlier one had. Of the first
    kubelet that a plugin knows all may have ended before, unless nothing can be read.
    """
    kept = [text for text, one in held.items() if one.is_kept and not one.outlives]
    is_lost = not any(map(record.has, kept)) and not (is_first and record.is_readable)
    return {
        text: one
        if one.container is None or one.outlives  # of the latter the one before has said that it has ended
        else replace(
            one,
            container=ENDED_OR_NOT,
            known_as=one.container or one.known_as,
            # What the kubelet before it had not named may have ended before, and the file be right.
            is_forgotten=one.is_forgotten
            or (is_lost and one.is_kept and (not record.is_readable or one.container != ENDED_OR_NOT)),
        )
        for text, one in held.items()
    }


def admitted(
    held: Mapping[str, Holder], *, is_listed: Callable[[str, str], bool], has: Callable[[str], bool]
) -> dict[str, Holder]:
    """
    Give what is held once the kubelet has named all pods that it has admitted since the machine restarted.

    It rejects a pod whose vGPUs no plugin lists, by ID and resource, and such a vGPU it has for no other pod either. As
    long as its checkpoint *has* one it may be yet to come to that pod, and a GPU that comes late be listed by then.
    """
    named = {one.pod for one in held.values() if one.container is not None} - {0}
    listed = {
        text
        for text, one in held.items()
        if not one.before_boot or one.container is not None or one.pod in named or is_listed(text, one.resource)
    }
    return {
        text: replace(one, before_boot=False) if one.before_boot and text in listed else one
        for text, one in held.items()
        if text in listed or has(text)
    }
