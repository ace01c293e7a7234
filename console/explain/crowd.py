"""The pods of an object, however many: those that are explained, and how many others each of them stands for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from console.denials import Created, newest
from console.explain.likeness import Likeness, likeness
from console.explain.troubles import Trouble
from console.explain.wants import Wants
from console.objects import Pod

MOST: Final = 20  # pods that are explained in one answer


class Chosen(NamedTuple):
    """A pod that is explained."""

    pod: Pod
    content: bytes  # as the API server gives it
    alike: int = 0  # others of which the same would be said


@dataclass(slots=True)
class _Kind:
    stands: Chosen
    order: int  # in which it was met first
    count: int = 1


class Crowd:
    """As many pods as there are, of which a few are kept."""

    def __init__(self, troubles: Callable[[Pod], tuple[Trouble, ...]]) -> None:
        """Tell by *troubles* what is wrong with the GPU or the node of a pod."""
        self.count = 0
        self.created: Created = {}
        self._troubles = troubles
        self._first: list[Chosen] = []
        self._kinds: dict[Likeness, _Kind] = {}

    def add(self, pod: Pod, content: bytes, wanted: Wants) -> None:
        """Count a pod, and keep it if it is one of the first, or of those that matter most; *wanted* are its nodes."""
        self.count += 1
        for owner, at in newest([pod]).items():
            self.created[owner] = max(at, self.created.get(owner, at))
        one = Chosen(pod, content)
        if self.count <= MOST:
            self._first.append(one)
        like = likeness(pod, wanted, self._troubles(pod))
        kind = self._kinds.get(like)
        if kind is None:
            self._kinds[like] = _Kind(one, self.count)
            self._forget()
            return
        kind.count += 1
        if _tells_more(pod, kind.stands.pod):
            kind.stands = one

    @property
    def chosen(self) -> tuple[Chosen, ...]:
        """All of them in their order where they are few; else one of each kind, the worst first."""
        if self.count <= MOST:
            return tuple(self._first)
        kinds = sorted(self._kinds, key=self._order)
        return tuple(self._kinds[one].stands._replace(alike=self._kinds[one].count - 1) for one in kinds)

    def _forget(self) -> None:
        # Whatever is kept comes before what was forgotten, for good: so a kind that is kept was counted from its first.
        if len(self._kinds) > MOST:
            del self._kinds[max(self._kinds, key=self._order)]

    def _order(self, like: Likeness) -> tuple[int, int]:
        return like.rank, self._kinds[like].order


def _tells_more(pod: Pod, than: Pod) -> bool:
    """Whether a pod stands for its kind rather than another: the last one that failed, or who waits or runs longest."""
    created, before = (one.metadata.creation_timestamp or "" for one in (pod, than))
    return created > before if pod.status.phase == "Failed" else created < before
