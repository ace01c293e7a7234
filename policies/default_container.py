"""Which container a share without a container's name is for: the one that the bare annotation means."""

from collections.abc import Callable, Mapping

import msgspec

from policies.contract import DEFAULT_CONTAINER_ANNOTATION, GRANT_ANNOTATION
from policies.errors import quoted
from policies.pod import Slot
from policies.quantity import whole
from policies.share import Share, milli_text


class _Entry(msgspec.Struct, frozen=True, gc=False):
    share: str = ""


class _Grant(msgspec.Struct, frozen=True, gc=False):
    containers: dict[str, _Entry]


_decode_grant = msgspec.json.Decoder(_Grant).decode


def default_container(
    annotations: Mapping[str, str],
    containers: list[Slot],
    share: Share,
    *,
    is_ours: Callable[[str], bool],
    warnings: list[str],
) -> str:
    """
    Name the container that *share* is for; it may not be in the pod, and is empty where there is no app container.

    A share that was granted stays where it is, whatever another webhook puts before it or names after it. Else it is
    for the container that the pod names, or for the first one, with a warning where there are several.
    """
    named = annotations.get(DEFAULT_CONTAINER_ANNOTATION)
    apps = [slot for slot in containers if slot.group == "containers"]
    granted = _granted(annotations, [*apps, *containers], share, is_ours) if GRANT_ANNOTATION in annotations else []
    if named and (named in granted or not granted):
        return named
    chosen = granted[0] if granted else apps[0].name if apps else ""
    if named:
        said = f"the share stays with container {quoted(chosen, 30)}, to which it was granted, "
        said += f"and not with {quoted(named, 30)} of {DEFAULT_CONTAINER_ANNOTATION}"
    elif len(apps) > 1:
        said = f"the share is for container {quoted(chosen, 30)}: "
        said += f"the annotation {DEFAULT_CONTAINER_ANNOTATION} can name another"
    else:
        return chosen
    if said not in warnings:  # the bare annotation and its alias may both be there
        warnings.append(said)
    return chosen


def _granted(
    annotations: Mapping[str, str], containers: list[Slot], share: Share, is_ours: Callable[[str], bool]
) -> list[str]:
    """
    Name the containers to which the pod's grant gives exactly *share*, and whose limits say so too.

    A user may have written both, and gains nothing: a container with such a limit asks for its vGPUs anyway.
    """
    try:
        entries = _decode_grant(annotations[GRANT_ANNOTATION]).containers
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    text = milli_text(share)
    return [
        slot.name
        for slot in containers
        if slot.name in entries and entries[slot.name].share == text and _has_limit(slot, is_ours)
    ]


def _has_limit(slot: Slot, is_ours: Callable[[str], bool]) -> bool:
    limits = slot.container.resources.limits if slot.container.resources else None
    return any(is_ours(name) and whole(quantity) for name, quantity in (limits or {}).items())
