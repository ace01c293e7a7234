"""Words such as `{{inputs.parameters.share}}`, which Argo replaces: what a workflow itself says that they are."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from webhook.preview.argo_defaults import workflow_of
from webhook.preview.shapes import Fields, mapping

OPENING = "{{"
# Up to the next {{, so that each is looked at once.
_WORD = re.compile(r"\{\{((?:(?!\{\{).)*?)\}\}", re.DOTALL)


class Parameters(msgspec.Struct, frozen=True):
    """What a workflow says of the words in its templates."""

    given: Mapping[str, str]  # to the whole workflow, as far as its file has the values
    named: frozenset[str]  # all that the whole workflow is given
    called: Mapping[str, set[str]]  # by its steps and tasks: the parameters that each template is given
    starts: frozenset[str]  # the templates that get what the workflow is given

    def values(self, holder: Fields) -> dict[str, str]:
        """Return what the words of a template are by its file; those that its callers give it are left out."""
        known = {f"workflow.parameters.{name}": value for name, value in self.given.items()}
        name = holder.get("name")
        if not isinstance(name, str):
            return known
        called, own = self.called.get(name), _values(mapping(holder, "inputs"), "default")
        unsure = set(called or ())
        if name in self.starts:
            own = {**own, **self.given} if called is None else own
            # Argo takes an argument without a value for whatever its valueFrom says, not for the value of the input.
            unsure |= self.named if called is not None else self.named - self.given.keys()
        return known | {f"inputs.parameters.{key}": filled(own[key], known) for key in own.keys() - unsure}


def parameters_of(document: Fields) -> Parameters:
    """Read the parameters of a workflow."""
    workflow = workflow_of(document)
    called = dict[str, set[str]]()
    for name, parameters in _calls(workflow):
        called.setdefault(name, set()).update(parameters)
    starts = frozenset(str(workflow.get(field)) for field in ("entrypoint", "onExit"))
    arguments = mapping(workflow, "arguments")
    return Parameters(_values(arguments), _names(arguments), called, starts)


def words(value: Any) -> Iterator[str]:
    """Yield the words in all texts of a value, as they stand there."""
    if isinstance(value, str):
        if OPENING in value:
            yield from (match[0] for match in _WORD.finditer(value))
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from words(key)
            yield from words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from words(inner)


def split(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before each word of a text, with the word, and what stands behind the last one, with none."""
    at = 0
    for match in _WORD.finditer(text):
        yield text[at : match.start()], match[0]
        at = match.end()
    yield text[at:], ""


def inner(word: str) -> str:
    """Return what a word names."""
    return word[2:-2].strip()


def filled(value: Any, known: Mapping[str, str] | str) -> Any:
    """Replace the words that are *known*, or all by one text; keys stay."""
    if isinstance(value, str):
        if OPENING not in value:
            return value
        if isinstance(known, str):
            return _WORD.sub(lambda _: known, value)
        return _WORD.sub(lambda match: known.get(match[1].strip(), match[0]), value)
    if isinstance(value, dict):
        return {key: filled(inner, known) for key, inner in value.items()}
    return [filled(inner, known) for inner in value] if isinstance(value, list) else value


def pruned(value: Any) -> Any:
    """Leave out what has a word: fields, and items that are named by one or begin with it; other arguments stay."""
    if isinstance(value, dict):
        kept = ((key, one) for key, one in value.items() if key == "name" or not _has_word(one))
        return {key: pruned(one) for key, one in kept}
    if isinstance(value, list):
        return [pruned(one) for one in value if not _is_told_by_word(one)]
    return filled(value, "x") if isinstance(value, str) else value


def _has_word(value: Any) -> bool:
    return isinstance(value, str) and OPENING in value


def _is_told_by_word(value: Any) -> bool:
    """Whether an item cannot be without a text that has a word, such as a mount without its path."""
    if isinstance(value, str):
        return value.startswith(OPENING)
    if not isinstance(value, dict) or "image" in value:
        return False
    return any(_has_word(inner) for inner in value.values()) or any(
        _has_word(text) for inner in value.values() if isinstance(inner, dict) for text in inner.values()
    )


def _listed(holder: Fields) -> list[Fields]:
    """Return the parameters of inputs or arguments that have a name."""
    items = holder.get("parameters")
    every = items if isinstance(items, list) else []
    return [one for one in every if isinstance(one, dict) and isinstance(one.get("name"), str)]


def _names(holder: Fields) -> frozenset[str]:
    return frozenset(one["name"] for one in _listed(holder))


def _values(holder: Fields, *fallbacks: str) -> dict[str, str]:
    """Return the values of parameters, or what else they are by a field of them; that of a `valueFrom` is not known."""
    found: dict[str, str] = {}
    for one in _listed(holder):
        fields = () if one.get("valueFrom") is not None else ("value", *fallbacks)
        value = next((one[field] for field in fields if one.get(field) is not None), None)
        if isinstance(value, str | int | float):
            found[one["name"]] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _calls(value: Any) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the templates that steps and tasks call, each with the parameters that it is given."""
    if isinstance(value, dict):
        for caller in (value, mapping(value, "templateRef")):
            if isinstance(caller.get("template"), str):
                yield caller["template"], _names(mapping(value, "arguments"))
        value = [inner for key, inner in value.items() if key != "templateRef"]
    if isinstance(value, list):
        for inner in value:
            yield from _calls(inner)
