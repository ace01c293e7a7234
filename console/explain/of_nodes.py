"""The lines of many nodes: what is said alike of several is said once, and of so many different things a few."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from console.explain.troubles import without_single
from console.words import several

_EACH: Final = 10  # nodes that have a line of their own each, and lines of more
_NAMED: Final = 3  # of those that are told together
_UNHEALTHY: Final = " is unhealthy"


class Told(NamedTuple):
    """A node, and why it does not take a pod."""

    name: str
    by_name: tuple[str, ...]  # why, by what has a name, such as a taint: another name is another reason
    by_numbers: tuple[str, ...]  # why, by what is free
    otherwise: str  # what is said of it where nothing keeps the pod off

    @property
    def has_reason(self) -> bool:
        """Whether anything keeps the pod off it."""
        return bool(self.by_name or self.by_numbers)

    @property
    def said(self) -> str:
        """All that is said of it."""
        return "; ".join((*self.by_name, *self.by_numbers)) or self.otherwise

    @property
    def but_for_numbers(self) -> tuple[str, ...]:
        """Why, without what differs from one node to the next."""
        return (*self.by_name, *(_without_gpus(one, self.name) for one in self.by_numbers))


def in_lines(told: Iterable[Told]) -> Iterator[str]:
    """Write what is said of nodes: few one by one, many by what is said, and first of those that could take the pod."""
    nodes = list(told)
    if len(nodes) <= _EACH:
        yield from (f"{one.name}: {one.said}" for one in nodes)
        return
    groups = _grouped(nodes, lambda one: one.said)
    if len(groups) > _EACH:  # then most of them differ by what is free alone, or by other numbers
        groups = _grouped(nodes, lambda one: one.but_for_numbers)
    yield from map(_line, groups[:_EACH])
    if left := sum(map(len, groups[_EACH:])):
        yield f"and {several(left, 'node')} more"


def _grouped(nodes: Iterable[Told], key: Callable[[Told], object]) -> list[list[Told]]:
    """Put together those of one *key*: first those without a reason, then what is said of most."""
    groups: dict[object, list[Told]] = {}
    for one in nodes:
        groups.setdefault((one.has_reason, key(one)), []).append(one)
    return sorted(groups.values(), key=lambda group: (group[0].has_reason, -len(group)))


def _line(group: Sequence[Told]) -> str:
    names = ", ".join(one.name for one in group[:_NAMED])
    more = f" and {several(len(group) - _NAMED, 'node')} more" if len(group) > _NAMED else ""
    first = group[0]
    is_alike = all(one.said == first.said for one in group)
    return f"{names}{more}: {first.said}{'' if is_alike else f' (of {first.name}; of the others with other numbers)'}"


def _without_gpus(why: str, name: str) -> str:
    """Write a reason without its list of GPUs, but for whether some are unhealthy: there another remedy helps."""
    head, _, gpus = why.partition(": GPU ")
    return without_single(head, name) + (_UNHEALTHY if _UNHEALTHY in gpus else "")
