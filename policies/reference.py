"""A policy in force as text: every field, and the file and line that it comes from."""

from collections.abc import Iterator
from typing import Any

import msgspec

from policies.policy import EffectivePolicy
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


def _line(policy: EffectivePolicy, field: str, label: str, value: Any) -> str:
    return f"{f'{label}: {_text(value)}':<{_COLUMN}} # {policy.source(field)}"


def _text(value: Any) -> str:
    if isinstance(value, Share | Headroom):
        return f'"{value}"'
    return msgspec.json.encode(value).decode()
