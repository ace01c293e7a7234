"""Interleavings of two passes: every order of their calls that can make a difference."""

from collections.abc import Iterator

from tests.certs.simulated_api_server import Call
from tests.certs.simulated_cluster import SimulatedCluster

# Without a bound there are 3,196 interleavings of two first passes, 324 when a CA is due for renewal, and 38 and 44
# when the new one has settled. They take minutes, and passed when this was written.
MOST_SWITCHES = 3


def commute(done: Call, next_: Call) -> bool:
    """Whether two calls of two passes have the same result in either order."""
    reads = (done.verb == "get") + (next_.verb == "get")
    return reads == 2 or (reads == 1 and done.name != next_.name)


class Interleaving:
    """Two passes at once: their calls in the order of *prefix*, and after that as few switches as possible."""

    def __init__(self, cluster: SimulatedCluster, prefix: tuple[int, ...]) -> None:
        self.cluster, self.prefix, self.order = cluster, prefix, list[int]()
        self.branches: list[tuple[int, ...]] = []  # prefixes of interleavings that branch off this one
        self.passes = [cluster.start(), cluster.start()]
        self.switches = 0  # from a pass that could have continued

    def run(self) -> bool:
        """Make every call; False if this interleaving differs from another only in calls that commute."""
        done: Call | None = None
        while alive := [number for number, one in enumerate(self.passes) if not one.dead]:
            useful = [number for number in alive if done is None or not self._is_redundant(number, done)]
            number = self._choose(useful)
            if number is None:
                return False
            self.switches += bool(self.order) and number != self.order[-1] and self.order[-1] in alive
            done = self.passes[number].next_call
            self.order.append(number)
            self.passes[number].step()
        return True

    def _is_redundant(self, number: int, done: Call) -> bool:
        next_ = self.passes[number].next_call
        return number < self.order[-1] and next_ is not None and commute(done, next_)

    def _choose(self, useful: list[int]) -> int | None:
        at = len(self.order)
        if at < len(self.prefix):
            return self.prefix[at]
        choices = sorted(useful, key=lambda number: [number] != self.order[-1:])
        if self.switches < MOST_SWITCHES:
            self.branches += [(*self.order, other) for other in choices[1:]]
        return choices[0] if choices else None


def all_interleavings(start: SimulatedCluster) -> Iterator[SimulatedCluster]:
    """Run every interleaving of two passes that begin at *start*, and yield the cluster after each."""
    untried: list[tuple[int, ...]] = [()]
    while untried:
        interleaving = Interleaving(start.copy(), untried.pop())
        if interleaving.run():
            yield interleaving.cluster
        untried += interleaving.branches
