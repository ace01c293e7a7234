"""Objects as one file of YAML, as a person would write it."""

from typing import Any

import yaml

_HEADER = """\
# Made of the folders beside it by `make manifests`: change those, not this.
# kubectl apply -f manifests/install.yaml
"""
_LINE = 110  # characters


def written(objects: list[dict[str, Any]]) -> str:
    """Write *objects* as one file."""
    return _HEADER + yaml.dump_all(objects, Dumper=_Dumper, width=_LINE, sort_keys=False, explicit_start=True)


class _Dumper(yaml.SafeDumper):
    """YAML as a person would write it: long texts in lines of their own, and no anchors."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else ">" if len(text) > _LINE else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
