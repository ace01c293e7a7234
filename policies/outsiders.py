"""Who uses a GPU that is shared and has no share of it, and how that is said."""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import msgspec

from policies.node_values import Count, Name

MOST_OUTSIDERS: Final = 50  # of one GPU that are told, those that take most of it
_GIB: Final = 1024**3
END_IT: Final = (
    "delete its pod, and where Kubernetes has none of that name any more, stop the container on the node with crictl; "
    "what needs the GPU asks for a share"
)
END_THEM: Final = "nvidia-smi names them on the node: end them, or leave the GPU out of sharing with `offer: none`"


class Outsider(msgspec.Struct, frozen=True, kw_only=True):
    """A container that uses a GPU without a share of it."""

    namespace: Name
    pod: Name
    container: Name
    processes: Count  # on the GPU
    memory_bytes: Count | None = None

    @property
    def name(self) -> str:
        """How logs call it: namespace/pod/container."""
        return f"{self.namespace}/{self.pod}/{self.container}"


class OfNode(msgspec.Struct, frozen=True, kw_only=True):
    """Programs of the node itself, or of containers that Kubernetes did not start, that compute on a GPU."""

    processes: Count
    memory_bytes: Count | None = None


class _Taking(Protocol):
    @property
    def processes(self) -> int: ...
    @property
    def memory_bytes(self) -> int | None: ...


def taking(one: _Taking) -> str:
    """Say how much one has of a GPU."""
    counted = f"{one.processes} process{'' if one.processes == 1 else 'es'}"
    return counted if one.memory_bytes is None else f"{counted} with {one.memory_bytes / _GIB:.1f} GiB"


def told(outsiders: Iterable[Outsider], of_node: OfNode | None) -> Iterator[str]:
    """Say who uses a GPU without a share of it, and what to do."""
    for one in outsiders:
        yield f"{one.name} has {taking(one)}: {END_IT}"
    if of_node is not None:
        yield f"the node itself has {taking(of_node)}: {END_THEM}"
