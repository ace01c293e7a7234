"""What `gpu-share explain` looked at for one pod, or for an object that makes pods."""

import msgspec

from console.seen import Denial, Seen, SeenPod, Unseen
from policies.grant import Decision


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, and what there is to know of it."""

    pod: SeenPod
    seen: Seen
    asked: tuple[str, ...]  # annotations and limits by which it asks, as written
    decision: Decision | None = None  # by the policies of now
    undecided: Unseen | None = None  # why there is none
    selector: dict[str, str] = {}  # labels that its node must have
    tolerates: frozenset[str] = frozenset()  # keys of taints; "" is all
    events: tuple[str, ...] = ()  # what was said of it, the newest last


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked about: pods, or why there are none."""

    name: str  # as found: Pod, or Deployment team-vision/resnet
    subjects: tuple[Subject, ...] = ()
    denials: tuple[Denial, ...] = ()
