"""The pods of an object, however many: those that are explained, and how many others each of them stands for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from console.denials import Created, newest
from console.explain.likeness import Likeness, likeness
from console.explain.since import ended_at
from console.explain.troubles import Trouble
from console.explain.wants import Wants
from console.objects import Pod

MOST: Final = 20  # pods that are explained in one answer
_FEW: Final = 5  # that differ by their messages alone; more come after all others, which they would leave no room
_LAST: Final = 1000  # behind every rank


class Chosen(NamedTuple):
    """A pod that is explained."""

    pod: Pod
    content: bytes  # as the API server gives it
    alike: int = 0  # others of which the same would be said


@dataclass(slots=True)
class _Kind:
    stands: Chosen
    order: int  # in which it was met first
    variant: int  # how many others, which differ by their messages alone, were kept before
    count: int = 1


class Crowd:
    """As many pods as there are, of which a few are kept."""

    def __init__(
        self, troubles: Callable[[Pod], tuple[Trouble, ...]], in_the_way: Callable[[Pod], tuple[str, ...]]
    ) -> None:
        """Tell by *troubles* what is wrong with the GPU or the node of a pod, and what events say is *in the way*."""
        self.count = 0
        self.created: Created = {}
        self._troubles = troubles
        self._in_the_way = in_the_way
        self._first: list[tuple[Chosen, Wants]] = []
        self._kinds: dict[Likeness, _Kind] = {}

    def add(self, pod: Pod, content: bytes, wanted: Wants) -> None:
        """Count a pod, and keep it if it is one of the first, or of those that matter most; *wanted* are its nodes."""
        self.count += 1
        for owner, at in newest([pod]).items():
            self.created[owner] = max(at, self.created.get(owner, at))
        one = Chosen(pod, content)
        if self.count <= MOST:  # all of which are explained, alike or not
            self._first.append((one, wanted))
            return
        if self.count == MOST + 1:
            for number, first in enumerate(self._first, 1):
                self._keep(*first, number)
        self._keep(one, wanted, self.count)

    def _keep(self, one: Chosen, wanted: Wants, order: int) -> None:
        pod = one.pod
        like = likeness(pod, wanted, self._troubles(pod), self._in_the_way(pod))
        kind = self._kinds.get(like)
        if kind is None:
            self._kinds[like] = _Kind(one, order, self._variants(like))
            self._forget()
            return
        kind.count += 1
        if _tells_more(pod, kind.stands.pod):
            kind.stands = one

    @property
    def chosen(self) -> tuple[Chosen, ...]:
        """All of them in their order where they are few; else one of each kind, the worst first."""
        if self.count <= MOST:
            return tuple(one for one, _ in self._first)
        kinds = sorted(self._kinds, key=self._order)
        return tuple(self._kinds[one].stands._replace(alike=self._kinds[one].count - 1) for one in kinds)

    def _forget(self) -> None:
        # Whatever is kept comes before what was forgotten, for good: so a kind that is kept was counted from its first.
        if len(self._kinds) > MOST:
            del self._kinds[max(self._kinds, key=self._order)]

    def _variants(self, like: Likeness) -> int:
        return sum(one.but_for_messages == like.but_for_messages for one in self._kinds)

    def _order(self, like: Likeness) -> tuple[int, int, int]:
        kind = self._kinds[like]
        return (like.rank, kind.variant, kind.order) if kind.variant < _FEW else (_LAST, kind.variant, kind.order)


def _tells_more(pod: Pod, than: Pod) -> bool:
    """Whether a pod stands for its kind rather than another: the last one that failed, or who waits or runs longest."""
    if pod.status.phase == "Failed":
        return (ended_at(pod) or _created_at(pod)) > (ended_at(than) or _created_at(than))
    return _created_at(pod) < _created_at(than)


def _created_at(pod: Pod) -> str:
    return pod.metadata.creation_timestamp or ""
