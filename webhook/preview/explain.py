"""A decision in sentences, and every change that it makes to the pod."""

from collections.abc import Iterator

from policies.grant import Decision, Grant
from policies.reasons import reasons
from webhook.patch import Operation


def explain(decision: Decision, made: list[Operation]) -> Iterator[str]:
    """Yield the decision and the changes, line by line."""
    yield from reasons(decision)
    if isinstance(decision, Grant):
        yield "Changes:" if made else "Nothing is left to change: the pod has all of this already."
        yield from (f"  {_operation(one)}" for one in made)


def _operation(operation: Operation) -> str:
    if operation.op == "remove":
        return f"remove {operation.path}"
    return f"{operation.op} {operation.path} = {_value(operation.value)}"


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "{" + ", ".join(f"{_value(key)}: {_value(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(_value(inner) for inner in value) + "]"
        case _:
            text = str(value)
            return text if text.isprintable() else ascii(text)[1:-1]
