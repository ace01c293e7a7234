"""What the manifests install: `manifests/` itself and each overlay, and the objects in them by name."""

import pytest

from tests.manifests.admission import BASE
from tests.manifests.render import MANIFESTS, OVERLAYS, Object

each_installation = pytest.mark.parametrize("directory", [MANIFESTS, *OVERLAYS], ids=lambda directory: directory.name)


def named(kind: str, name: str, objects: list[Object] = BASE) -> Object:
    (found,) = (one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found
