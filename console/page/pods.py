"""Pods with shares as the page shows them: a hundred at a time."""

from datetime import datetime
from typing import Final

import msgspec

from console.page.filters import Filters
from console.top.rows import PodRow, Top
from console.top.segments import COLOURS, letter, owners
from console.words import ABSENT, age, gib, percent

MOST: Final = 100  # rows at a time


class PodView(msgspec.Struct, frozen=True, kw_only=True):
    """A container with a share."""

    namespace: str
    pod: str
    container: str
    share: str
    memory: str  # used, and its limit
    used_percent: int | None  # of the limit
    sm: str
    age: str
    phase: str
    runs: bool
    why: str
    node: str
    letter: str = ""  # by which bars call it; empty if it is on no GPU
    colour: int = 0


class PodsView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of them."""

    rows: tuple[PodView, ...]
    are_seen: bool  # False where nobody knows whether there are any
    first: int  # the number of the first one
    total: int  # in view
    page: int
    pages: int


def pods_view(shown: Top, filters: Filters, now: datetime) -> PodsView:
    """Show a page of the pods in view; the last one if there are fewer."""
    found = [row for row in shown.pods if filters.shows(row)]
    pages = max(1, -(-len(found) // MOST))
    page = min(filters.page, pages)
    begin = (page - 1) * MOST
    numbers = owners(shown.nodes)
    rows = tuple(_view(row, numbers.get((row.namespace, row.pod)), now) for row in found[begin : begin + MOST])
    return PodsView(
        rows=rows,
        are_seen=bool(shown.pods) or shown.has_no_pods,
        first=begin + 1,
        total=len(found),
        page=page,
        pages=pages,
    )


def _view(row: PodRow, number: int | None, now: datetime) -> PodView:
    used, limit = row.memory_used_bytes, row.memory_limit_bytes
    return PodView(
        namespace=row.namespace,
        pod=row.pod,
        container=row.container or ABSENT,
        share=row.share or ABSENT,
        memory=f"{gib(used)} of {gib(limit)}" if limit is not None else gib(used),
        used_percent=round(100 * used / limit) if used is not None and limit else None,
        sm=percent(row.sm_ratio),
        age=age(row.created, now),
        phase=row.phase or ABSENT,
        runs=row.runs,
        why=row.why,
        node=row.node or ABSENT,
        letter="" if number is None else letter(number),
        colour=0 if number is None else number % COLOURS,
    )
