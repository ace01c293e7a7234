"""What of a cluster is in view."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from console.top.rows import PodRow

_LONGEST: Final = 253  # characters of a name
_MOST_PAGES: Final = 10_000


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods and nodes; an empty text is all of them."""

    namespace: str = ""
    node: str = ""
    pod: str = ""  # a part of the name
    page: int = 1  # of the pods

    def shows(self, row: PodRow) -> bool:
        """Whether a pod is in view; one without a node is in view of every node, since it may come there."""
        return (
            (not self.namespace or row.namespace == self.namespace)
            and (not self.node or row.node in (self.node, ""))
            and self.pod in row.pod
        )

    def parameters(self, **changes: Any) -> dict[str, Any]:
        """Write them as parameters of an address, without those that say nothing."""
        values = msgspec.structs.asdict(self) | changes
        return {name: value for name, value in values.items() if value not in ("", 1)}


def read_filters(parameters: Mapping[str, str]) -> Filters:
    """Read them out of an address; what cannot be right is left out."""
    page = parameters.get("page", "")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < len(str(_MOST_PAGES)) else 1
    texts = {name: parameters.get(name, "")[:_LONGEST] for name in ("namespace", "node", "pod")}
    return Filters(page=max(1, number), **texts)
