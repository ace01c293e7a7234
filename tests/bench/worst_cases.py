"""Milliseconds and memory that the dearest pods cost, per 100 KiB of their body."""

import json
import time
import tracemalloc
from collections.abc import Iterator
from itertools import chain, product
from typing import NamedTuple

import msgspec

from policies.frameworks.framework import Framework, Memory, Override, Spelling
from policies.policy_set import PolicySet
from tests.bench.worst_pods import at_the_limits, widest, worst_pods
from tests.bench.worst_unread import OWN_LISTS
from tests.policies.pods import policies
from tests.webhook.reviews import call, debugged
from webhook.review import BadCall, review
from webhook.settings import MAX_BODY_BYTES

BOUND_MILLISECONDS = 10  # per 100 KiB or part of it
_PIECE = 100 * 1024
_SIZES = (3_000, 6_000, _PIECE, 4 * _PIECE)  # of small ones more is read, as long as they can be a start script
_SHOWN = 12
_LETTERS = ["".join(pair) for pair in product("abcdefgh", repeat=2)]  # of names, so that each letter begins several
_OFTEN = 15  # times, of the dearest
_WIDE = "environment: {reserved: strip}\nshare: {podMaximum: '8', maximum: '8'}\nhostPaths: [{path: /data}]"
_MOST_OWN = 64  # entries of frameworks, as many as a cluster may have


def _own(number: int) -> Framework:
    """Make an entry of a cluster's own, whose names begin and end as those of others do."""
    return Framework(
        name=f"team{number}",
        images=(f"team{number}/*/srv-*", f"*team{number}*", f"[a-z]*/srv{number}-*"),
        programs=(f"team{number} serve", f"python -m team{number}.server"),
        memory=Memory(
            spellings=(
                Spelling(argument=f"--gpu-{_LETTERS[number]}-fraction"),
                Spelling(variable=f"TEAM{number}_GPU_FRACTION"),
            ),
            overridden_by=(Override(argument=f"--{_LETTERS[number]}-bytes", source="a bench"),),
        ),
        source="a bench",
    )


def _own_list(variable: str) -> Framework:
    """Make an entry whose setting is one of several in a *variable*."""
    name = variable.lower().replace("_", "-")
    memory = Memory(spellings=(Spelling(variable=variable, value="fraction:{fraction}", separator=","),))
    return Framework(name=name, images=(f"{name}/*",), memory=memory, source="a bench")


_OWN_LISTS = msgspec.json.encode({"vgpusPerGpu": 60, "frameworks": [*map(_own_list, OWN_LISTS)]}).decode()
_OWN = msgspec.json.encode({"vgpusPerGpu": 60, "frameworks": [_own(number) for number in range(_MOST_OWN)]}).decode()
POLICIES = {
    "": policies(_WIDE, "vgpusPerGpu: 60"),
    "under time-slicing, ": policies("strategy: time-slicing"),
    f"with {_MOST_OWN} own entries, ": policies(_WIDE, _OWN),
    f"with {_MOST_OWN} own lists, ": policies(_WIDE, _OWN_LISTS),
    "by DRA, ": policies(f"{_WIDE}\nallocation: dra", "vgpusPerGpu: 10"),
}


def measure() -> Iterator[str]:
    """Yield the dearest pods of each policy, the dearest first."""
    costs = [_Cost(rules, name, body, _milliseconds(body, POLICIES[rules])) for rules, name, body in _cases()]
    costs.sort(key=lambda one: one.milliseconds, reverse=True)
    dearest = [one._replace(milliseconds=one.measured(_OFTEN)) for one in costs[: 4 * _SHOWN]]
    dearest.sort(key=lambda one: one.milliseconds, reverse=True)
    for one in dearest[:_SHOWN]:
        peak, size = one.peak() / 1024, len(one.body)
        yield f"worst pods: {one.milliseconds:5.2f} ms, {peak:6.0f} KiB per 100 KiB: {size:7} bytes, {one.title[:70]!a}"
    largest = max(_answer(one.body, POLICIES[one.rules]) for one in costs)
    peak, name = max((one.peak(), one.title) for one in costs)
    yield f"worst pods: at most {peak / 1024:.0f} KiB of memory per 100 KiB ({name[:60]!a}), answer of {largest} bytes"
    bodies = [json.dumps(call(on), ensure_ascii=False).encode() for _, on in widest(MAX_BODY_BYTES - _PIECE)]
    peak, size = max((_peak(body, by), len(body)) for body in bodies for by in POLICIES.values())
    yield f"worst pods: {peak / 2**20:.0f} MiB for a body of {size / 2**20:.1f} MiB with a character of four bytes"


class _Cost(NamedTuple):
    """What a pod costs under some rules, per piece of its body or for a smaller one."""

    rules: str
    name: str
    body: bytes
    milliseconds: float

    @property
    def title(self) -> str:
        return f"{self.rules}{self.name}"

    def measured(self, often: int) -> float:
        return _milliseconds(self.body, POLICIES[self.rules], often)

    def peak(self) -> float:
        return _peak(self.body, POLICIES[self.rules]) / _pieces(self.body)


def _cases() -> Iterator[tuple[str, str, bytes]]:
    for rules in POLICIES:
        for name, on in chain(*map(worst_pods, _SIZES), at_the_limits(_PIECE)):
            for what, called in ((name, call(on)), (f"one more container in {name}", debugged(on))):
                yield rules, what, json.dumps(called).encode()


def _pieces(body: bytes) -> float:
    return max(len(body) / _PIECE, 1)


def _answer(body: bytes, by: PolicySet) -> int:
    try:
        return len(review(body, by).body)
    except BadCall:
        return 0


def _milliseconds(body: bytes, by: PolicySet, often: int = 3) -> float:
    times = []
    for _ in range(often):
        began = time.process_time()  # whatever else the machine does
        _answer(body, by)
        times.append((time.process_time() - began) * 1000)
    return min(times) / _pieces(body)


def _peak(body: bytes, by: PolicySet) -> int:
    tracemalloc.start()
    _answer(body, by)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
