"""Policies as text for people: the one in force with its sources, the tables of all fields and all frameworks."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from policies.frameworks.framework import Framework
from policies.policy import EffectivePolicy
from policies.reading.schema import cluster_schema, policy_schema
from policies.share import Headroom, Share

_COLUMN = 44  # where the sources stand


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


def table(*, cluster: bool) -> str:
    """Write all fields of a policy file, or of `_cluster.yaml`, as a Markdown table."""
    schema = cluster_schema() if cluster else policy_schema()
    rows = _rows(schema, schema["$defs"]["Cluster" if cluster else "Policy"], "")
    return "\n".join(["| field | default | meaning |", "| --- | --- | --- |", *rows])


def _rows(schema: dict[str, Any], model: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in model["properties"].items():
        here = f"{path}.{name}" if path else name
        if "$ref" in field:
            yield from _rows(schema, schema["$defs"][field["$ref"].rpartition("/")[2]], here)
            continue
        default = msgspec.json.encode(field["default"]).decode() if "default" in field else ""
        meaning = re.sub(r"\s+", " ", field.get("description", "")).replace("|", "\\|")
        yield f"| `{here}` | `{default}` | {meaning} |"


def _line(policy: EffectivePolicy, field: str, label: str, value: Any) -> str:
    return f"{f'{label}: {_text(value)}':<{_COLUMN}} # {policy.source(field)}"


def _text(value: Any) -> str:
    if isinstance(value, Share | Headroom):
        return f'"{value}"'
    return msgspec.json.encode(value).decode()


def framework_table(frameworks: Iterable[Framework]) -> str:
    """Write the catalogue as a Markdown table."""
    rows = (f"| [{one.name}]({one.source}) | {_settings(one)} | {one.note} |" for one in frameworks)
    return "\n".join(["| framework | what is set under MPS | to know |", "| --- | --- | --- |", *rows])


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
    return f"`{spelling.name}={spelling.write(example)}` for 0.2{since}"
