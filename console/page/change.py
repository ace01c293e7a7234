"""Something that changed in a cluster, and from where that is known."""

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change."""

    at: str  # ISO 8601
    what: str  # a sentence without a full stop
    source: str  # who says so
    is_bad: bool = False
    namespace: str = ""  # of the pod that it is about, if it is about one
    pod: str = ""
    node: str = ""
