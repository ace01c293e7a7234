"""What `gpu-share explain` looked at for one pod, or for an object that makes pods."""

from typing import Final

import msgspec

from console.seen import Seen, SeenPod, Unseen
from console.tolerations import Toleration
from policies.grant import Decision

EVENTS: Final = "events"  # as `Unseen.what` begins where they cannot be read


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, and what there is to know of it."""

    pod: SeenPod
    seen: Seen
    alike: int = 0  # other pods, of which the same would be said
    asked: tuple[str, ...]  # annotations and limits by which it asks, as written
    decision: Decision | None = None  # by the policies of now
    undecided: Unseen | None = None  # why there is none
    together: int | None = None  # vGPUs or GPUs of all its containers, by DRA thousandths; None where it is not counted
    selector: dict[str, str] = {}  # labels that its node must have
    tolerations: tuple[Toleration, ...] = ()
    events: tuple[str, ...] = ()  # what was said of it, the newest last
    in_the_way: tuple[str, ...] = ()  # of these, what still holds
    claims: tuple[str, ...] = ()  # what it waits for by DRA
    quotas: tuple[str, ...] = ()  # of shares, in its namespace
    unseen: tuple[Unseen, ...] = ()  # of these


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked about: pods, or why there are none."""

    name: str  # as found: Pod, or Deployment team-vision/resnet
    subjects: tuple[Subject, ...] = ()
    more: int = 0  # pods that are neither among these nor like one of them
    trouble: tuple[str, ...] = ()  # what the object that makes pods, or a controller, says of those that are not there
    states: tuple[str, ...] = ()  # what the object says of itself beside that
    is_over: bool = False  # whether it has ended, and makes no pods any more
    quotas: tuple[str, ...] = ()  # of shares, in its namespace
    unseen: tuple[Unseen, ...] = ()  # of these
