"""Pods that were denied lately, by the controllers that make them, as long as none of theirs was created since."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from console.events import Event
from console.objects import Pod
from console.seen import Denial
from console.words import moment

Created = dict[tuple[str, str, str], datetime]  # by namespace, kind and name of an owner: when its newest pod was

_OF_OURS: Final = ("gpu-share", "nvidia-mps")  # in messages of ours, and in many of others


class Denials(NamedTuple):
    """Controllers whose pods were denied lately."""

    ours: tuple[Denial, ...]  # whose messages name us
    others: tuple[Denial, ...]  # of which nobody knows by the message whether their pods have a share


def denials(events: Iterable[Event], pods: Iterable[Pod], now: datetime) -> Denials:
    """Find the controllers whose pods were denied lately, each with the last denial."""
    created = newest(pods)
    found: dict[tuple[str, ...], Denial] = {}
    ours: set[tuple[str, ...]] = set()
    for event in sorted(events, key=lambda one: one.order, reverse=True):
        if not event.is_recent(now) or is_over(event, created):
            continue
        on = event.involved_object
        made = Denial(
            namespace=on.namespace,
            kind=on.kind,
            name=on.name,
            message=event.said,
            count=event.times,
            last=event.at,
            uid=on.uid,
            api_version=on.api_version,
        )
        key = (made.namespace, made.kind, made.name, made.api_version)
        found.setdefault(key, made)
        if any(word in event.message for word in _OF_OURS):
            ours.add(key)
    return Denials(
        ours=tuple(found[key] for key in sorted(found) if key in ours),
        others=tuple(found[key] for key in sorted(found) if key not in ours),
    )


def newest(pods: Iterable[Pod]) -> Created:
    """Say when each owner has created a pod last, of those that are still there."""
    created: Created = {}
    for pod in pods:
        at = moment(pod.metadata.creation_timestamp)
        for owner in pod.metadata.owner_references if at else ():
            key = (pod.metadata.namespace, owner.kind, owner.name)
            created[key] = max(at, created.get(key, at)) if at else created[key]
    return created


def is_over(event: Event, created: Created) -> bool:
    """Whether a controller whose pod was not created has created one since; in the same second it may be another."""
    on, at = event.involved_object, moment(event.at)
    since = created.get((on.namespace, on.kind, on.name))
    return at is not None and since is not None and since > at
