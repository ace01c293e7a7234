"""What to do about what is said of a pod, and the section of the documents that says more."""

import msgspec


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    says: str  # what Kubernetes says, a part of it
    names: tuple[str, ...] = ()  # of which it names one, too
    what: str
    page: str

    def is_of(self, text: str) -> bool:
        """Whether it is about what a *text* says."""
        return self.says in text and (not self.names or any(one in text for one in self.names))
