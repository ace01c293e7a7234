"""
Which container has which ID: the names of the links that the kubelet makes to the containers' logs.

They are `<pod>_<namespace>_<container>-<ID>.log`, whatever the runtime. Nobody else says it without access to the API
server or to the runtime, which would be access to everything. A name that would be too long for a file is cut, and so
is its ID: what such a container takes is not known.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_LINK = re.compile(
    r"(?P<pod>[a-z0-9.-]{1,253})_(?P<namespace>[a-z0-9-]{1,63})_(?P<container>[a-z0-9-]{1,63})-(?P<id>[0-9a-f]{64})\.log"
)


@dataclass(frozen=True, slots=True, order=True)
class Container:
    """A container by its names."""

    namespace: str
    pod: str
    container: str


def containers(directory: Path) -> dict[str, Container]:
    """
    List containers by their ID, those that have ended but not been removed among them.

    Raises:
        OSError: If the directory cannot be read.
    """
    found = (_LINK.fullmatch(path.name) for path in directory.iterdir())
    return {one["id"]: Container(one["namespace"], one["pod"], one["container"]) for one in found if one}
