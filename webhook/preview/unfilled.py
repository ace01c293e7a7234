"""A pod with words that its controller replaces: whether what becomes of it depends on them, and what then is known."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from policies.contract import FRAMEWORK_ANNOTATION, FRAMEWORK_ANNOTATION_PREFIX
from policies.errors import quoted
from policies.grant import Decision, Denied, Grant, Untouched
from policies.pod import Pod
from webhook.patch import Operation, operations
from webhook.preview.opaque import opaque
from webhook.preview.parameters import filled, inner, pruned, words
from webhook.preview.shapes import Fields, mapping

Decide = Callable[[Pod], tuple[Decision, str]]  # the decision, and why the API server denies what it admits

# What a word may be: an amount that is none, small, a whole GPU, and above all there is, and any other text.
_TRIED = ("0", "0.1", "1", "999999", "x")
# What a word that may be anything is tried as, whether a pod is denied for it.
_DENIED = ("--gpu-memory-utilization=0.999", "NVIDIA_VISIBLE_DEVICES", "VISIBLE_DEVICES")
_NAMED = 3
_TOKEN = re.compile(r"gpushare\d+word")


class Unfilled(msgspec.Struct, frozen=True):
    """What can be said of a pod with words."""

    pod: Fields  # by which it is judged: as written, or with the values that its file has for the words
    unclear: str = ""  # why nothing is said of it, as a sentence
    said: tuple[str, ...] = ()  # what the verdict takes for granted
    unwritable: str = ""  # why it is not written into its object, as a sentence
    tokens: Mapping[str, str] = {}  # that it has in place of words
    words: Mapping[str, str] = {}

    def restored(self, made: list[Operation]) -> list[Operation]:
        """Write words in place of what stands for them."""
        if not self.tokens:
            return made
        return [msgspec.convert(_put(msgspec.to_builtins(one), self.tokens, self.words), Operation) for one in made]


def judged(pod: Fields, values: Mapping[str, str], decide: Decide) -> Unfilled:
    """Say by which pod to judge one that may have words, of which *values* are known."""
    every = [*dict.fromkeys(words(pod))]
    if not every:
        return Unfilled(pod)
    keys = [*dict.fromkeys(_in_keys(pod))]
    if keys:
        return Unfilled(pod, unclear=_unclear(keys))
    known = filled(pod, values)
    anything = opaque(known)
    alone = [word for word, is_alone in anything.items() if is_alone]
    if alone and _may_be_denied(known, alone, decide):
        return Unfilled(pod, unclear=_unclear(alone))
    left = [*dict.fromkeys(words(known))]
    said = _not_looked_at([*anything])
    if not _depends(pod, (*_TRIED, values), decide):
        said = (*_by_values([one for one in opaque(pod) if one not in left]), *said)
        tokens = _tokens(pod)
        written = {inner(one): one for one in every}
        kind, codes, made = _outcome(filled(pod, tokens), decide)
        if _outcome(pod, decide) == (kind, codes, _put(made, tokens, written)):
            return Unfilled(pod, said=said)
        return Unfilled(filled(pod, tokens), said=said, tokens=tokens, words=written)
    if _outcome(known, decide)[0] is Pod or (left and _depends(known, _TRIED, decide)):
        return Unfilled(pod, unclear=_unclear([*_asking(known)] or left))
    taken = [one for one in every if one not in left]
    return Unfilled(
        known,
        said=(*_by_values(taken), *said),
        unwritable=f"nothing is written there, since it depends on {_named(taken)}, which Argo replaces: write the "
        "values out",
    )


def _depends(pod: Fields, tried: tuple[str | Mapping[str, str], ...], decide: Decide) -> bool:
    """Whether what becomes of a pod is another by what its words are."""
    if any(_frameworks(pod)):  # of whose names none is tried
        return True
    tokens = _tokens(pod)
    kind, codes, made = _outcome(filled(pod, tokens), decide)
    for one in tried:
        known = dict.fromkeys(tokens, one) if isinstance(one, str) else {**tokens, **one}
        if _outcome(filled(pod, known), decide) != (kind, codes, _put(made, tokens, known)):
            return True
    return bool(codes) and not {*codes} <= {*_outcome(pruned(pod), decide)[1]}


def _may_be_denied(pod: Fields, anything: list[str], decide: Decide) -> bool:
    """Whether a pod is denied only if words that may be anything are what is denied."""
    tokens = _tokens(pod)
    tried = (tokens | dict.fromkeys(map(inner, anything), one) for one in _DENIED)
    return not _outcome(filled(pod, tokens), decide)[1] and any(
        _outcome(filled(pod, known), decide)[1] for known in tried
    )


def _tokens(pod: Fields) -> dict[str, str]:
    """Call each word by a plain text, since shells and rules know braces."""
    return {inner(one): f"gpushare{at}word" for at, one in enumerate(dict.fromkeys(words(pod)))}


def _put(value: Any, tokens: Mapping[str, str], known: Mapping[str, str]) -> Any:
    """Replace tokens in all texts."""
    if isinstance(value, str):
        by_token = {token: known[one] for one, token in tokens.items()} if _TOKEN.search(value) else {}
        return _TOKEN.sub(lambda match: by_token.get(match[0], match[0]), value)
    if isinstance(value, dict):
        return {key: _put(one, tokens, known) for key, one in value.items()}
    return [_put(one, tokens, known) for one in value] if isinstance(value, list) else value


def _outcome(pod: Fields, decide: Decide) -> tuple[type, list[str], list[Any]]:
    """What becomes of a pod, as far as it can be compared: why it is denied, and what is changed in it."""
    try:
        read = msgspec.convert(pod, Pod)
    except msgspec.ValidationError:  # with a value for a word
        return Pod, [], []
    decision, denied_after = decide(read)
    denied = decision.denied if isinstance(decision, Untouched) else decision
    if isinstance(denied, Denied):
        return type(decision), [one.code for one in denied.reasons], []
    made = operations(read, decision) if isinstance(decision, Grant) else []
    return type(decision), ["by the API server"] if denied_after else [], msgspec.to_builtins(made)


def _by_values(taken: list[str]) -> tuple[str, ...]:
    if not taken:
        return ()
    return (f"{_named(taken)}: judged by the values in the file, and whoever submits it may give others",)


def _not_looked_at(found: list[str]) -> tuple[str, ...]:
    if not found:
        return ()
    return (f"{_named(found)}: not known here, so what they say of GPUs and their memory is not looked at",)


def _asking(pod: Fields) -> Iterator[str]:
    """Yield the annotations that have words, as messages write them."""
    for key, text in mapping(mapping(pod, "metadata"), "annotations").items():
        if any(True for _ in words(text)) and "gpu-share" in key:
            yield f"{key}={text}"


def _frameworks(pod: Fields) -> Iterator[str]:
    """Yield the words in annotations that name a framework."""
    for key, text in mapping(mapping(pod, "metadata"), "annotations").items():
        if key == FRAMEWORK_ANNOTATION or key.startswith(FRAMEWORK_ANNOTATION_PREFIX):
            yield from words(text)


def _in_keys(pod: Fields) -> Iterator[str]:
    """Yield the words in names of annotations and resources, which may name any."""
    holders = [mapping(mapping(pod, "metadata"), "annotations")]
    spec = mapping(pod, "spec")
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = mapping(container, "resources")
        holders += [mapping(resources, "limits"), mapping(resources, "requests")]
    yield from (word for holder in holders for key in holder for word in words(key))


def _unclear(found: list[str]) -> str:
    return f"{_named(found)}: Argo replaces this, and preview does not know by what: write the value out"


def _named(found: list[str]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(quoted(one, 100)[1:-1] for one in found[:_NAMED]) + more
