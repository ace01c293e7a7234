"""
Which GPUs go together: a pure choice by the weights of their connections.

The best group has the best connections inside. Of groups alike, the best one leaves the best connections between those
that are left: a single GPU is taken from where it parts no others.

Where groups are few, as of 10 GPUs at most, all are compared. Beyond, two groups are grown from each of 16 GPUs, and
the best eight of them are improved by exchanges, each at most as often as it has members. So the time has a bound:
32 * n * size additions, and 16 * n * size * size for the exchanges; 8 of 16 take two milliseconds. Where a machine is
made of equal boards and sockets that finds the best group, elsewhere a good one.
"""

from collections.abc import Collection, Sequence
from itertools import combinations
from math import comb

_FEW_GROUPS = 252  # those of 5 of 10
_MOST_STARTS = 16
_MOST_IMPROVED = 8  # the best one alone can be two exchanges from where any other gets by one

Weights = Sequence[Sequence[int]]  # of the connection of each with each; 0 with itself


def best_group(weights: Weights, candidates: Sequence[int], *, size: int, included: Collection[int]) -> list[int]:
    """
    Choose *size* of *candidates*, all *included* ones among them; of groups alike, the one with the lowest numbers.

    Returns:
        Them in order; all candidates if there are no more than *size*.
    """
    fixed = [one for one in candidates if one in included][:size]
    others = [one for one in candidates if one not in included]
    missing = min(size - len(fixed), len(others))
    chooser = _Chooser(weights, candidates)
    if comb(len(others), missing) <= _FEW_GROUPS:
        groups = [[*fixed, *more] for more in combinations(others, missing)]
        best = max(groups, key=chooser.rank)
        return sorted(best)
    starts = others[:: -(-len(others) // _MOST_STARTS)]
    size = len(fixed) + missing
    grown = [chooser.grown([*fixed, start], others, size, among=among) for start in starts for among in (-1, 1)]
    distinct = {tuple(sorted(one)): one for one in grown}
    promising = sorted(distinct.values(), key=chooser.rank, reverse=True)[:_MOST_IMPROVED]
    best = max((chooser.improved(one, fixed) for one in promising), key=chooser.rank)
    return sorted(best)


class _Chooser:
    """Compares groups of *candidates*."""

    def __init__(self, weights: Weights, candidates: Sequence[int]) -> None:
        self._weights = weights
        self._candidates = candidates
        # With all candidates: what the rest loses with one of them.
        self._degrees = {one: sum(weights[one][other] for other in candidates) for one in candidates}

    def rank(self, group: list[int]) -> tuple[int, int, list[int]]:
        """Weigh a group: inside, among those it leaves (but for what all groups have in common), and by its numbers."""
        inside = sum(self._weights[one][other] for one, other in combinations(group, 2))
        return inside, inside - sum(self._degrees[one] for one in group), [-one for one in sorted(group)]

    def grown(self, start: Sequence[int], others: Sequence[int], size: int, *, among: int) -> list[int]:
        """
        Add to *start* one of *others* after the other, each time the one that is connected best, up to *size*.

        Of those alike it is one *among* many that are near, 1, which may be needed yet, or among few, -1.
        """
        group = list(start)
        gains = {one: sum(self._weights[one][other] for other in group) for one in others if one not in group}
        while len(group) < size:
            best = max(gains, key=lambda one: (gains[one], among * self._degrees[one], -one))
            group.append(best)
            del gains[best]
            for one in gains:
                gains[one] += self._weights[one][best]
        return group

    def improved(self, group: list[int], fixed: Collection[int]) -> list[int]:
        """Exchange one for another, each time the best two, until that helps no more or all can have been exchanged."""
        members = list(group)
        for _ in group:
            gains = {one: sum(self._weights[one][other] for other in members) for one in self._candidates}
            outside = [one for one in self._candidates if one not in members]
            leave = [one for one in members if one not in fixed]
            exchanges = [(self._change(gains, old, new), -new, old) for old in leave for new in outside]
            change, new, old = max(exchanges, default=((0, 0), 0, 0))
            if change <= (0, 0):
                break
            members[members.index(old)] = -new
        return members

    def _change(self, gains: dict[int, int], leaves: int, comes: int) -> tuple[int, int]:
        inside = gains[comes] - self._weights[comes][leaves] - gains[leaves]
        return inside, inside - self._degrees[comes] + self._degrees[leaves]
