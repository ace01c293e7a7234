"""The last look at a daemon before it is ended with the work of containers: what is only slow has time to answer."""

import time
from collections.abc import Callable

from plugin.mps.busy_callers import BusyCallers
from plugin.mps.daemon import Daemon
from plugin.mps.seen import Answered, Blocked, Seen
from plugin.mps.timing import Timing

_SLOW = "it answers, but slower than it should"
_MANY = 5  # connections, of one who asks much


def last_look(
    daemon: Daemon,
    timing: Timing,
    busy: BusyCallers,
    goes_on: Callable[[], bool],
    hold: Callable[[Seen], Seen],
) -> Seen:
    """
    Look at a daemon with patience, as long as it *goes_on*.

    One that answers late is `Blocked`, by whoever keeps it *busy*; *hold* has its limits held meanwhile, which who does
    that may have changed, and adds to what was seen why they are not.
    """

    def waits() -> bool:
        busy.look(daemon.pids)
        return goes_on()

    began_seconds = time.monotonic()
    with daemon.control.patient(timing.patience, waits):
        seen = daemon.look()
        took_seconds = time.monotonic() - began_seconds
        seen = hold(seen)
    if not isinstance(seen, Answered) or seen.in_vain or took_seconds <= timing.answer:
        return seen
    return Blocked("; ".join(filter(None, (_slow(busy), seen.fault))))


def _slow(busy: BusyCallers) -> str:
    name, connections = busy.most()
    if not name:
        return f"{_SLOW}: the driver may be slow, or the node busy"
    if connections < _MANY:
        return f"{_SLOW}: it works for long on what {name} asks"
    return f"{_SLOW}: clients ask it more than it can answer in time, most of them of {name}: end it"
