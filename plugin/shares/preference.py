"""
Which free vGPUs a container should get, so that its share lies on one GPU, and whole GPUs go together.

A rejection here would fail the pod, so there is none: whatever arrives, as many IDs as were asked for
come back, or as many as there are. Where no GPU has room they are still the same ones each time, and
`allocation` says no to them with the reason.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from plugin.gpus.gpu import Pool
from plugin.shares.grouping import best_group

AllocationPolicy = Literal["pack", "spread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A GPU as the kubelet sees it for one container."""

    position: int  # in the inventory
    free: tuple[str, ...]  # IDs that may be taken, by index, the included ones too
    included: int  # how many of them the container has already
    room: int  # how many vGPUs of it nobody holds, those that must not be taken now among them


# Which GPU comes first among those with room. A new policy is one more entry.
_ORDER: dict[AllocationPolicy, Callable[[_Candidate], int]] = {
    "pack": lambda candidate: candidate.room,
    "spread": lambda candidate: -candidate.room,
}


def preferred_ids(  # noqa: PLR0913 - what the kubelet says, and what we know
    *,
    available: Sequence[str],
    must_include: Sequence[str],
    size: int,
    pool: Pool,
    policy: AllocationPolicy,
    room: Mapping[str, int] | None = None,
) -> list[str]:
    """
    Choose *size* of the *available* IDs, the ones in *must_include* first.

    *room* says, by UUID, how many vGPUs of a GPU nobody holds: that is less than there are, where some are of an
    earlier number, and more where some are hidden from the kubelet.

    Returns:
        Each ID once; fewer than *size* only if there are no more.
    """
    included = dict.fromkeys(must_include)
    candidates = _candidates({**included, **dict.fromkeys(available)}, included, pool=pool, room=room or {})
    ordered = _whole(candidates, size=size, pool=pool) or _ordered(candidates, size=size, policy=policy)
    # Unknown IDs last: Allocate will reject them, but the number must be right.
    wanted = chain(included, *(candidate.free for candidate in ordered), available)
    return list(dict.fromkeys(wanted))[: max(size, 0)]


def _candidates(
    free: Iterable[str], included: Collection[str], *, pool: Pool, room: Mapping[str, int]
) -> list[_Candidate]:
    on_gpu: list[list[tuple[int, str]]] = [[] for _ in pool.gpus]
    for text in free:
        if place := pool.place(text):
            on_gpu[place[0]].append((place[1], text))
    return [
        _Candidate(
            position=position,
            free=tuple(text for _, text in sorted(vgpus))[: _most(pool.gpus[position].uuid, vgpus, included, room)],
            included=sum(text in included for _, text in vgpus) if included else 0,
            room=room.get(pool.gpus[position].uuid, len(vgpus)),
        )
        for position, vgpus in enumerate(on_gpu)
    ]


def _most(uuid: str, vgpus: Collection[tuple[int, str]], included: Collection[str], room: Mapping[str, int]) -> int:
    """Count the vGPUs of a GPU that may be taken, those the container has already among them."""
    return room.get(uuid, len(vgpus)) + sum(text in included for _, text in vgpus)


def _whole(candidates: Sequence[_Candidate], *, size: int, pool: Pool) -> list[_Candidate]:
    """List the GPUs that go together best for a request of whole ones; none if it is another, or they are too few."""
    count, rest = divmod(size, pool.vgpus_per_gpu)
    whole = [one for one in candidates if len(one.free) == pool.vgpus_per_gpu]
    begun = {one.position for one in candidates if one.included}
    if rest or not 0 < count <= len(whole) or len(begun) > count or not begun <= {one.position for one in whole}:
        return []
    positions = [one.position for one in whole]
    group = best_group(pool.weights, positions, size=count, included=begun)
    return [candidates[position] for position in group]


def _ordered(candidates: Iterable[_Candidate], *, size: int, policy: AllocationPolicy) -> list[_Candidate]:
    """
    Sort by: where the container is already, where all of it has room, the policy, the inventory.

    Where no GPU has room, the emptiest come first: then a request for several GPUs gets whole ones.
    """

    def rank(candidate: _Candidate) -> tuple[int, bool, int, int]:
        fits = len(candidate.free) >= size
        choice = _ORDER[policy](candidate) if fits else -len(candidate.free)
        return -candidate.included, not fits, choice, candidate.position

    return sorted(candidates, key=rank)
