"""What a pod was granted, as the annotation of the webhook says."""

import msgspec

from console.words import Shown
from policies.node_values import Count, Name


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod was granted, as its annotation says."""

    class Container(msgspec.Struct, frozen=True, kw_only=True):
        """What one container was granted."""

        share: Shown = Shown("")
        vgpus: Count | None = None
        of: Count | None = None
        resource: Shown = Shown("")  # by DRA, and of partitions
        count: Count | None = None  # of partitions

    policy: Shown = Shown("")
    strategy: Shown = Shown("")
    attach: Shown = Shown("")
    resource: Shown = Shown("")
    allocation: Shown = Shown("")
    containers: dict[Name, Container] = {}
