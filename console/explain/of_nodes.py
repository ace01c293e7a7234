"""The lines of many nodes: what is said alike of several is said once, and of so many different things a few."""

from collections.abc import Iterable, Iterator
from typing import Final

from console.explain.troubles import without_single
from console.words import several

_EACH: Final = 10  # nodes that have a line of their own each, and lines of more
_NAMED: Final = 3  # of those that are told together


def in_lines(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write what is said of nodes, each with its name: few one by one, many by what is said, a few of them named."""
    nodes = list(told)
    if len(nodes) <= _EACH:
        yield from (f"{name}: {said}" for name, said in nodes)
        return
    groups = _grouped((said, name, said) for name, said in nodes)
    if len(groups) > _EACH:  # then most of them differ by what is free alone, or by other numbers
        groups = _grouped((without_single(said, name), name, said) for name, said in nodes)
    shown = groups[:_EACH]
    yield from (_line(group) for group in shown)
    if left := sum(map(len, groups[_EACH:])):
        yield f"and {several(left, 'node')} more, for other reasons"


def _grouped(keyed: Iterable[tuple[str, str, str]]) -> list[list[tuple[str, str]]]:
    groups: dict[str, list[tuple[str, str]]] = {}
    for key, name, said in keyed:
        groups.setdefault(key, []).append((name, said))
    return list(groups.values())


def _line(group: list[tuple[str, str]]) -> str:
    names = ", ".join(name for name, _ in group[:_NAMED])
    more = f" and {several(len(group) - _NAMED, 'node')} more" if len(group) > _NAMED else ""
    first, said = group[0]
    is_alike = all(one == said for _, one in group)
    return f"{names}{more}: {said}{'' if is_alike else f' (of {first}; of the others with other numbers)'}"
