"""Names of ConfigMaps that end in a hash of the content, as kustomize gives them."""

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

_LENGTH = 10
_WITHOUT_WORDS = str.maketrans("013ae", "ghkmt")  # so that no hash spells one


def add_hash(config_map: dict[str, Any], templates: Iterable[dict[str, Any]]) -> None:
    """Add the hash to the name of *config_map*, and to the references to it in pod *templates*."""
    old = config_map["metadata"]["name"]
    new = f"{old}-{_hash(config_map['data'])}"
    config_map["metadata"]["name"] = new
    for template in templates:
        for reference in references(template):
            if reference["name"] == old:
                reference["name"] = new


def references(template: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what names a ConfigMap in the volumes of a pod template."""
    for volume in template["spec"].get("volumes", []):
        for source in (volume, *volume.get("projected", {}).get("sources", [])):
            if "configMap" in source:
                yield source["configMap"]


def _hash(data: dict[str, str]) -> str:
    content = {"data": data, "kind": "ConfigMap", "name": ""}
    written = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&":  # which Go writes so
        written = written.replace(character, f"\\u{ord(character):04x}")
    return sha256(written.encode()).hexdigest()[:_LENGTH].translate(_WITHOUT_WORDS)
