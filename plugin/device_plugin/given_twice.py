"""
vGPUs that the kubelet gives to a new container although another one has them: these are not given, whatever it says.

It forgets what it is allocating if it is asked who holds what meanwhile and a pod has just ended (kubernetes#137534),
and lists that with its container all the same. And it forgets all if its checkpoint is lost: then it lists containers
without what they have, one after the other.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from plugin.device_plugin.holdings import Holdings
from plugin.errors import AllocationError, TenantsError

_SOMEBODY = "a container"


@dataclass(frozen=True, slots=True)
class Question:
    """What the kubelet has asked about a container before it allocates to it, which it does not always."""

    offered: frozenset[str] = frozenset()  # all IDs that it may get
    own: frozenset[str] = frozenset()  # those that it gets in any case: of its pod's init containers, mostly
    had_by: Mapping[str, str] = field(default_factory=dict)  # which other container has one of them

    def is_of(self, ids: Collection[str]) -> bool:
        """Whether it was about the container that gets *ids*."""
        return self.own <= {*ids} <= self.offered


def had(ids: Iterable[str], holdings: Holdings, *, own: Collection[str]) -> dict[str, str]:
    """
    Say which of *ids* another container has, as far as anybody knows, and which: namespace/pod/container.

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
        return {text: one.known_as or _SOMEBODY for text, one in known.items() if one.is_forgotten}
    is_whole, pods = holdings.is_settled, listing.pods(held)
    found = dict[str, str]()
    for text, one in known.items():
        if listing.has(text, one) or (one.is_forgotten and not is_whole):
            found[text] = listing.containers.get(text) or one.known_as or _SOMEBODY
        elif one.container is None and one.pod in pods and text not in own:
            found[text] = f"an init container beside {pods[one.pod]}"
    return found


def check(ids: Iterable[str], had_by: Mapping[str, str]) -> None:
    """
    See that no other container has one of *ids*.

    Raises:
        AllocationError: If one does, by what `had` has said.
    """
    for text in sorted(had_by.keys() & ids):
        raise AllocationError(
            f"{text} must be free, and {had_by[text]} has it: the kubelet has lost count, so create "
            "the pod anew, and if that fails too, delete that one's pod first"
        )
