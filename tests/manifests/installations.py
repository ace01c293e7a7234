"""What the manifests install: `manifests/` itself and each overlay, and the objects in them by name."""

import pytest

from tests.manifests.admission import BASE
from tests.manifests.config_maps import references
from tests.manifests.render import MANIFESTS, OVERLAYS, Object

each_installation = pytest.mark.parametrize("directory", [MANIFESTS, *OVERLAYS], ids=lambda directory: directory.name)


def named(kind: str, name: str, objects: list[Object] = BASE) -> Object:
    (found,) = (one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def policy_files(objects: list[Object], template: Object) -> dict[str, str]:
    """Return the files in the policy directory of a pod, by name: of one name, that of the last ConfigMap counts."""
    files: dict[str, str] = {}
    for reference in references(template):
        files |= named("ConfigMap", reference["name"], objects)["data"]
    return files
