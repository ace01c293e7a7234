"""Versions of Kubernetes, and from which on it has what gpu-share needs: the table of docs/install.md."""

import re
from typing import Final

Version = tuple[int, int]

OLDEST: Final = (1, 30)
OLDEST_DRA: Final = (1, 36)
_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})")


def version_in(text: str) -> Version | None:
    """Read the version of an API server or a kubelet; None if it is none."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else None


def written(version: Version) -> str:
    """Write a version as the documents have it."""
    return f"{version[0]}.{version[1]}"
