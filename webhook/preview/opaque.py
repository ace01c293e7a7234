"""Words that may be more than the value of a flag: whole arguments, programs, images, names of variables."""

import re
from collections.abc import Iterator
from typing import Any

from webhook.preview.parameters import OPENING, split, words
from webhook.preview.shapes import Fields, mapping

# What stands before a word that is a value, to a shell: `--lr=`, `--lr `, `LR=`, and quotes behind them.
# Behind `-c ` and `-m ` stand programs.
_BEFORE_VALUE = re.compile(
    r"""(?:^|[\s;&|(){}`"'])(?:--?[A-Za-z][\w.-]*=|--[A-Za-z][\w.-]*[ \t]+|[A-Za-z_]\w*\+?=)["']?[^\s;&|()`]*$"""
)
_BEFORE_ALONE = re.compile(r"""(?:^|[\s;&|(){}`"'])-{0,2}$""")
_TAIL = 200  # of a text, in which the word before another is looked for
_CALLS_SHELL = re.compile(r"-[A-Za-z]*c")
_PLAIN = "x"  # for an earlier word


def opaque(pod: Fields) -> dict[str, bool]:
    """Return the words that may be anything, a memory setting too, and whether they stand alone, not in a path."""
    spec = mapping(pod, "spec")
    found: list[tuple[str, bool]] = []
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        found += ((word, False) for word in words(container.get("image")))
        found += ((word, True) for word in words([one.get("name") for one in container.get("env") or ()]))
        found += _in_arguments([*(container.get("command") or ()), *(container.get("args") or ())])
    alone = {word for word, is_alone in found if is_alone}
    return {word: word in alone for word, _ in found}


def _in_arguments(texts: list[Any]) -> Iterator[tuple[str, bool]]:
    before = ""
    for text in texts:
        if not isinstance(text, str) or OPENING not in text:
            pass
        elif _CALLS_SHELL.fullmatch(before) or any(re.search(r"\s", plain) for plain, _ in split(text)):
            yield from _in_shell(text)
        elif text.startswith(OPENING):
            yield from ((word, True) for word in words(text))
        before = text if isinstance(text, str) else ""


def _in_shell(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of a shell's text that are not within the value of a flag or variable."""
    tail = ""
    for plain, word in split(text):
        tail = (tail + plain)[-_TAIL:]
        if word and not _BEFORE_VALUE.search(tail):
            yield word, bool(_BEFORE_ALONE.search(tail))
        tail += _PLAIN
