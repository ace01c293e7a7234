"""Two passes at once: every order of their calls that can make a difference."""

from collections.abc import Iterator

from tests.certs.simulated_api_server import Call
from tests.certs.simulated_cluster import World

# Without a bound there are 3,196 orders of two first passes, 324 when an authority is due, and 38 and 44 when it
# has settled. They take minutes, and passed when this was written.
MOST_SWITCHES = 3


def commute(done: Call, next_: Call) -> bool:
    """Whether two calls of two passes give the same in either order."""
    reads = (done.verb == "get") + (next_.verb == "get")
    return reads == 2 or (reads == 1 and done.name != next_.name)


class Schedule:
    """Two passes at once, in an order of calls that is told at first, and left to each pass in turn then."""

    def __init__(self, world: World, told: tuple[int, ...]) -> None:
        self.world, self.told, self.order = world, told, list[int]()
        self.others: list[tuple[int, ...]] = []  # orders that branch off this one
        self.passes = [world.start(), world.start()]
        self.switches = 0  # from a pass that could have gone on

    def run(self) -> bool:
        """Make every call; False if this order differs from another only in calls that commute."""
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
        if at < len(self.told):
            return self.told[at]
        choices = sorted(useful, key=lambda number: [number] != self.order[-1:])
        if self.switches < MOST_SWITCHES:
            self.others += [(*self.order, other) for other in choices[1:]]
        return choices[0] if choices else None


def all_schedules(start: World) -> Iterator[World]:
    """Run the orders of the calls of two passes that begin at *start*; gives the worlds that they leave."""
    untried: list[tuple[int, ...]] = [()]
    while untried:
        schedule = Schedule(start.copy(), untried.pop())
        if schedule.run():
            yield schedule.world
        untried += schedule.others
