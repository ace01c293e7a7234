"""
One configuration of NVIDIA's device plugin, `version: v1`, out of hostile text.

NVIDIA's plugin ignores keys that it does not know, and takes those it knows in any case. Here the first are reported,
and the second are problems, so that nothing is lost in silence. Its YAML is that of sigs.k8s.io/yaml, where `yes` is
true.
"""

import msgspec

from policies.errors import Problem, quoted
from policies.migration.findings import Becomes, Finding, ignored
from policies.migration.nvidia_keys import DEFAULTS, KEYS, SECTIONS, becomes
from policies.migration.nvidia_sharing import IN_ORDER, Replicated, read_replicated
from policies.migration.written import Place, Text
from policies.reading.document import DocumentError, Node, read
from policies.reading.wording import sentence, shown

_KNOWN = {path.lower(): path for path in (*KEYS, *SECTIONS, *IN_ORDER)}
_MPS, _TIME_SLICING = IN_ORDER


class Configuration(msgspec.Struct):
    """What a configuration says."""

    name: str
    values: dict[str, object]  # by key, those of `sharing` apart
    findings: list[Finding]
    active: Replicated | None = None  # the sharing that is in force
    passive: Replicated | None = None  # the other one, which NVIDIA's plugin does not look at

    @property
    def replicas(self) -> int | None:
        """Into how many replicas a whole GPU is divided; None if it is not shared."""
        counted = self.active.whole_gpus if self.active else None
        return counted.replicas if counted else None


def read_configuration(written: Text, file: str, problems: list[Problem]) -> Configuration:
    """Read one configuration; what NVIDIA's plugin would not start with is added to *problems*."""
    made = Configuration(written.name, {}, [])
    place = Place(file, written, problems)
    try:
        root = read(written.text, old_booleans=True)
    except DocumentError as error:
        place.add("", error.line, error.message)
        return made
    if root.value is not None:
        found: dict[str, Replicated] = {}
        _section(root, "", place, made, found)
        made.active, made.passive, *_ = (*(found[one] for one in IN_ORDER if one in found), None, None)
    if made.replicas:
        absent = (key for key in DEFAULTS if key not in made.values)
        made.findings += [Finding(made.name, key, 0, "not written", *DEFAULTS[key]) for key in absent]
    return made


def _section(node: Node, path: str, place: Place, made: Configuration, found: dict[str, Replicated]) -> None:
    if not isinstance(node.value, dict):
        place.fault(path, node, f"expected a mapping, got {shown(node.value)}: write its keys below it")
        return
    for key, child in node.fields.items():
        shown_key = quoted(key, 80)[1:-1]
        here = f"{path}.{shown_key}" if path else shown_key
        known = _KNOWN.get(here.lower()) if "." not in key else None
        if known is None:
            _report(made, here, child, place, ignored("NVIDIA's plugin v0.20 does not know this key, and ignores it"))
        elif known != here:
            place.fault(here, child, f"unknown key: write {known.rpartition('.')[2]}")
        elif child.value is None and here != _TIME_SLICING:
            _report(made, here, child, place, ignored("it has no value, which is as if it were not written"))
        elif here in SECTIONS:
            _section(child, here, place, made, found)
        elif here in IN_ORDER:
            found[here] = read_replicated(here, child, place)
        else:
            _value(child, here, place, made)


def _value(node: Node, key: str, place: Place, made: Configuration) -> None:
    try:
        made.values[key] = msgspec.convert(node.value, KEYS[key].of)
    except msgspec.ValidationError as error:
        expected = KEYS[key].expected
        message = (
            f"expected {expected}, got {shown(node.value)}: write one of these, or remove the key"
            if expected
            else sentence(KEYS[key].of, node.value, error)
        )
        place.fault(key, node, message)
        return
    for one in becomes(key, made.values[key]):
        _report(made, key, node, place, one)


def _report(made: Configuration, key: str, node: Node, place: Place, told: Becomes) -> None:
    made.findings.append(Finding(made.name, key, place.line(node), shown_value(node.value), *told))


def shown_value(value: object) -> str:
    """Write a value as its author would recognise it; short lists with their items."""
    if isinstance(value, list) and value and all(isinstance(one, str | int) for one in value):
        text = ", ".join(shown(one) for one in value)
        return f"[{text}]" if len(text) <= 60 else shown(value)  # noqa: PLR2004 - what a line has room for
    return shown(value)
