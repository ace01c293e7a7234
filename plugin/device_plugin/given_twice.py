"""
vGPUs that the kubelet gives to a new container although another one has them: these are not given, whatever it says.

It forgets what it is allocating if it is asked who holds what meanwhile and a pod has just ended (kubernetes#137534),
and lists that with its container all the same. And it forgets all if its checkpoint is lost: then it lists containers
without what they have, one after the other.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from plugin.device_plugin.holder import Holder
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.outliving import SOMEBODY
from plugin.errors import AllocationError, NoRoomError, TenantsError


class Had(NamedTuple):
    """Who has a vGPU that the kubelet gives to another container."""

    by: str  # namespace/pod/container, or what is known of it
    outlives: bool = False  # the kubelet has taken it back, and processes of its pod are left


@dataclass(frozen=True, slots=True)
class Question:
    """What the kubelet has asked about a container before it allocates to it, which it does not always."""

    offered: frozenset[str] = frozenset()  # all IDs that it may get
    own: frozenset[str] = frozenset()  # those that it gets in any case: of its pod's init containers, mostly
    had_by: Mapping[str, Had] = field(default_factory=dict)  # which other container has one of them

    def is_of(self, ids: Collection[str]) -> bool:
        """Whether it was about the container that gets *ids*."""
        return self.own <= {*ids} <= self.offered


def had(ids: Iterable[str], holdings: Holdings, *, own: Collection[str]) -> dict[str, Had]:
    """
    Say which of *ids* another container has, as far as anybody knows, and which.

    Those in *own* may be of init containers of its pod. Of other pods' the kubelet names none; where it names a
    container of such a pod, they have theirs still.
    """
    held = holdings.held()
    known = {text: held[text] for text in ids if text in held}
    if not known:  # mostly: what ends is free a second later
        return {}
    try:
        listing = holdings.ask()
    except TenantsError:
        forgotten = {text: Had(one.known_as or SOMEBODY) for text, one in known.items() if one.is_forgotten}
        return _with_outliving(known, forgotten, holdings)
    is_whole, pods = holdings.is_settled, listing.pods(held)
    found = dict[str, Had]()
    for text, one in known.items():
        if listing.has(text, one) or (one.is_forgotten and not is_whole):
            found[text] = Had(listing.containers.get(text) or one.known_as or SOMEBODY)
        elif one.container is None and one.pod in pods and text not in own:
            found[text] = Had(f"an init container beside {pods[one.pod]}")
    return _with_outliving(known, found, holdings)


def _with_outliving(known: Mapping[str, Holder], found: dict[str, Had], holdings: Holdings) -> dict[str, Had]:
    """Add to what is *found* of what is *known* what processes hold of whose pods the kubelet has given it away."""
    left = holdings.outliving(known.keys() - found.keys())
    return found | {text: Had(by, outlives=True) for text, by in left.items()}


def check(ids: Iterable[str], had_by: Mapping[str, Had]) -> None:
    """
    See that no other container has one of *ids*.

    Raises:
        AllocationError: If one does, by what `had` has said.
        NoRoomError: If it has ended for the kubelet alone.
    """
    for text in sorted(had_by.keys() & ids):
        has = had_by[text]
        if has.outlives:
            raise NoRoomError(
                f"{text} must be free, and processes of {has.by} still use it, whose pod was deleted by force: wait "
                "until they have ended, or end them on the node"
            )
        raise AllocationError(
            f"{text} must be free, and {has.by} has it: the kubelet has lost count, so create the pod anew, and if "
            "that fails too, delete that one's pod first"
        )
