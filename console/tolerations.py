"""Taints of nodes, and which pods come to these all the same."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from console.words import Shown

KEEPS_OFF: Final = ("NoSchedule", "NoExecute")


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """A taint of a node."""

    key: Shown = Shown("")
    value: Shown = Shown("")
    effect: Shown = Shown("")


class Toleration(msgspec.Struct, frozen=True):
    """Of which taints a pod bears some."""

    key: str = ""  # of all, where it is empty
    operator: str = "Equal"
    value: str = ""
    effect: str = ""  # any, where it is empty

    def covers(self, taint: Taint) -> bool:
        """Whether a pod bears *taint* by it; of newer operators, which compare numbers, that is what is taken on."""
        is_of = self.key in ("", taint.key) and self.effect in ("", taint.effect)
        return is_of and (self.operator not in ("", "Equal") or self.value == taint.value)


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Iterator[Taint]:
    """Yield what keeps a pod off a node."""
    borne = tuple(tolerations)
    yield from (one for one in taints if one.effect in KEEPS_OFF and not any(by.covers(one) for by in borne))
