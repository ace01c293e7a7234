"""Policies as text for people: the one in force with its sources, the tables of all fields and all frameworks."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from policies.frameworks.framework import Framework, Override
from policies.policy import EffectivePolicy, Source
from policies.reading.schema import cluster_schema, policy_schema
from policies.share import Headroom, Share

_COLUMN = 44  # where the sources stand
_ELSEWHERE = ("Framework", "Toleration")  # entries with a table of their own, here or in Kubernetes' documents
_TYPES = {
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "null": "`null`",
    "object": "mapping",
    "string": "text",
}


def show(namespace: str, policy: EffectivePolicy) -> Iterator[str]:
    """Yield the policy as the lines of a policy file, with a comment that says where each field comes from."""
    yield f"# The policy of the namespace {namespace}"
    for field in msgspec.structs.fields(policy.policy):
        value = getattr(policy.policy, field.name)
        if not isinstance(value, msgspec.Struct):
            yield _line(policy, field.encode_name, field.encode_name, value)
            continue
        yield f"{field.encode_name}:"
        for inner in msgspec.structs.fields(value):
            name = f"{field.encode_name}.{inner.encode_name}"
            yield _line(policy, name, f"  {inner.encode_name}", getattr(value, inner.name))


def fields(policy: EffectivePolicy) -> Iterator[tuple[str, str, Source]]:
    """Yield each field in force: its name with dots, its value as a policy file writes it, and where it was written."""
    for field in msgspec.structs.fields(policy.policy):
        value = getattr(policy.policy, field.name)
        if not isinstance(value, msgspec.Struct):
            yield field.encode_name, _text(value), policy.source(field.encode_name)
            continue
        for inner in msgspec.structs.fields(value):
            name = f"{field.encode_name}.{inner.encode_name}"
            yield name, _text(getattr(value, inner.name)), policy.source(name)


def table(model: Literal["Policy", "Cluster", "Framework"]) -> str:
    """Write all fields of a policy file, of `_cluster.yaml` or of a framework as a Markdown table."""
    schema = policy_schema() if model == "Policy" else cluster_schema()
    rows = _rows(schema["$defs"], model, "")
    return "\n".join(["| field | values | default | meaning |", "| --- | --- | --- | --- |", *rows])


def _rows(models: dict[str, Any], model: str, path: str) -> Iterator[str]:
    for name, field in models[model]["properties"].items():
        here = f"{path}{name}"
        if "$ref" in field:
            yield from _rows(models, _named(field), f"{here}.")
            continue
        default = _default(field) if "default" in field else "required"
        alternatives = [field, *field.get("anyOf", ())]
        entries = [one.get("items", one) for one in alternatives if "$ref" in one.get("items", one)]
        described = (one["description"] for one in alternatives if "description" in one)
        meaning = next(described, models[_named(entries[0])]["description"] if entries else "")
        yield f"| `{here}` | {_values(field)} | {default} | {_escaped(meaning)} |"
        if entries and _named(entries[0]) not in _ELSEWHERE:
            yield from _rows(models, _named(entries[0]), f"{here}." if entries[0] in alternatives else f"{here}[].")


def _values(field: dict[str, Any]) -> str:
    """Say in a few words what the schema allows."""
    if "enum" in field:
        return ", ".join(f"`{'null' if value is None else value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(map(_values, field["anyOf"]))
    if "$ref" in field:
        return "fields below"
    if field["type"] == "array":
        items = field["items"]
        return f"list of {'entries' if '$ref' in items else _values(items)}"
    if field["type"] == "integer" and "minimum" in field:
        return f"{field['minimum']} to {field['maximum']}"
    most = field.get("maxLength")
    longest = f" of at most {most} characters" if most else ""
    examples = ", ".join(f'`"{example}"`' for example in field.get("examples", ()))
    return f"{_TYPES[field['type']]}{longest}{', such as ' if examples else ''}{examples}"


def _default(field: dict[str, Any]) -> str:
    default = field["default"]
    return f"`{default}`" if "enum" in field and default is not None else f"`{msgspec.json.encode(default).decode()}`"


def _escaped(text: str) -> str:
    """Write what is no code such that Markdown shows it as it is."""
    parts = re.sub(r"\s+", " ", text).replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("*", "\\*") for index, part in enumerate(parts))


def _named(reference: dict[str, Any]) -> str:
    return str(reference["$ref"].rpartition("/")[2])


def _line(policy: EffectivePolicy, field: str, label: str, value: Any) -> str:
    return f"{f'{label}: {_text(value)}':<{_COLUMN}} # {policy.source(field)}"


def _text(value: Any) -> str:
    if isinstance(value, Share | Headroom):
        return f'"{value}"'
    return msgspec.json.encode(value).decode()


def framework_table(frameworks: Iterable[Framework]) -> str:
    """Write the catalogue as a Markdown table."""
    rows = (f"| [{one.name}]({one.source}) | {_settings(one)} | {_overrides(one)} | {one.note} |" for one in frameworks)
    head = "| framework | what is set under MPS | denied under time-slicing | to know |"
    return "\n".join([head, "| --- | --- | --- | --- |", *rows])


def _overrides(framework: Framework) -> str:
    overrides = framework.memory.overridden_by if framework.memory else ()
    return ", ".join(f"[`{one.name}`{_harmless(one)}]({one.source})" for one in overrides)


def _harmless(override: Override) -> str:
    """Say by which values it is denied, if not by all."""
    values = " or ".join(f"{override.begins}{one}" for one in override.harmless)
    return f" other than {values}" if values else f" with {override.begins}" if override.begins else ""


def _settings(framework: Framework) -> str:
    settings = [f"`{one.variable}={one.value}`" for one in framework.constants]
    memory = framework.memory
    if memory is None:
        return ", ".join(settings) or "nothing: it follows the free memory"
    spelling = memory.spellings[0]
    if memory.of == "free":
        if memory.of_free is None:
            return "nothing: its default follows the free memory"
        return f"`{spelling.name}={spelling.write(memory.of_free)}` of the free memory, which is the share"
    example = {"fraction": "0.2", "percent": "20", "percentLeft": "80"}[spelling.kind]
    since = f", from {memory.since} on" if memory.since else ""
    others = [f", and `{one.name}` empty" for one in memory.alike[1:] if memory.exclusive]
    return "".join([f"`{spelling.name}={spelling.write(example)}` for 0.2{since}", *others])
