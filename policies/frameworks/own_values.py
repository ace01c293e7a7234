"""
A user's own memory setting in a container: in the environment, in the words of the command line, in a shell's text.

A value that cannot be shown to be within the share (a reference, a number of bytes) counts as above it.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from policies.changes import Change, ReplaceArgument, ReplaceVariable
from policies.contract import SHARE_FRACTION
from policies.errors import quoted
from policies.frameworks.budget import Wanted
from policies.frameworks.detection import runs_through_shell
from policies.frameworks.framework import Spelling
from policies.pod import Container

_OPTION = re.compile(r"--?[A-Za-z]")
# An option in a shell's text, and what follows it: a variable, or a word up to what ends one.
_SHELL_OPTION = re.compile(
    r"(?<![\w-])(--?[A-Za-z][\w-]*)(?=(?:=|[\s\\]+)[\"']?(\$\(\w+\)|\$\{\w+\}|[^\s\"'\\;&|()<>]*))", re.ASCII
)
_EXPANDED = f"$({SHARE_FRACTION})"  # by the kubelet, in the words of a command line
_EXPANDED_BY_SHELL = (_EXPANDED, f"${SHARE_FRACTION}", f"${{{SHARE_FRACTION}}}")


class Kept(msgspec.Struct, frozen=True, gc=False):
    """A value that is within the share."""

    setting: str  # the argument or the variable


class TooMuch(msgspec.Struct, frozen=True, gc=False):
    """A value that is above the share, or cannot be shown to be within it."""

    setting: str
    value: str  # printable, shortened
    change: Change | None  # what lowers it; None where nothing can be replaced


class Line(NamedTuple):
    """A command line: what `command` and `args` say together."""

    words: list[str]
    args_at: int  # where `args` begins

    def replaced(self, position: int, text: str) -> ReplaceArgument:
        """Put *text* in the place of the word at *position*."""
        if position < self.args_at:
            return ReplaceArgument("command", position, text)
        return ReplaceArgument("args", position - self.args_at, text)


def own_values(container: Container, wanted: Wanted) -> list[Kept | TooMuch]:
    """Find every value that the user has given to the setting, however it is spelled."""
    command, args = container.command or [], container.args or []
    line = Line([*command, *args], len(command))
    in_arguments = _in_shell if runs_through_shell(line.words) else _in_words
    found: list[Kept | TooMuch] = []
    for spelling in wanted.memory.spellings:
        if spelling.variable is None:
            found += in_arguments(line, wanted, spelling)
        elif container.env:
            found += _in_environment(container, wanted, spelling)
    return found


def _in_environment(container: Container, wanted: Wanted, spelling: Spelling) -> Iterator[Kept | TooMuch]:
    for index, variable in enumerate(container.env or ()):
        if variable.name != spelling.variable:
            continue
        if variable.value_from is not None:
            if not spelling.separator:  # one that holds several settings may well hold none of ours
                change = ReplaceVariable(index, variable.name, wanted.text(spelling))
                yield TooMuch(variable.name, "a reference", change)
            continue
        yield from _in_value(wanted, spelling, variable.value or "", index)


def _in_value(wanted: Wanted, spelling: Spelling, value: str, index: int) -> Iterator[Kept | TooMuch]:
    items = value.split(spelling.separator) if spelling.separator else [value]
    # Alone in its variable, a value in another form (bytes, say) is ours and unreadable; among others it is another's.
    numbers = [_number(spelling, item) for item in items] if spelling.separator else [_number(spelling, value) or ""]
    above = [number is not None and not wanted.fits(spelling, number) for number in numbers]
    if any(above):
        lowered = [wanted.text(spelling) if high else item for item, high in zip(items, above, strict=True)]
        change = ReplaceVariable(index, spelling.name, spelling.separator.join(lowered))
        yield TooMuch(spelling.name, quoted(value), change)
    elif any(number is not None for number in numbers):
        yield Kept(spelling.name)


def _in_words(line: Line, wanted: Wanted, spelling: Spelling) -> Iterator[Kept | TooMuch]:
    for position, word in enumerate(line.words):
        if not word.startswith("-"):
            continue
        option, equals, value = word.partition("=")
        if not _is_way_to_write(option, spelling):
            continue
        following = line.words[position + 1] if position + 1 < len(line.words) else ""
        is_apart = not equals and bool(following) and not _OPTION.match(following)
        number = _number(spelling, following if is_apart else value)
        if number is None and spelling.value != "{fraction}":
            continue  # the same option with another purpose
        if wanted.fits(spelling, number or "") or (number == _EXPANDED and wanted.may_be_told(spelling)):
            yield Kept(spelling.name)
        elif is_apart:
            yield TooMuch(spelling.name, quoted(following), line.replaced(position + 1, wanted.text(spelling)))
        else:
            change = line.replaced(position, f"{option}={wanted.text(spelling)}")
            yield TooMuch(spelling.name, quoted(value), change)


def _in_shell(line: Line, wanted: Wanted, spelling: Spelling) -> Iterator[Kept | TooMuch]:
    """Look into what a shell runs. It is read, never rewritten: quoting and variables are the shell's."""
    for option, value in _SHELL_OPTION.findall(" ".join(line.words)):
        if not _is_way_to_write(option, spelling):
            continue
        number = _number(spelling, value)
        if number is None and spelling.value != "{fraction}":
            continue
        told = number in _EXPANDED_BY_SHELL and wanted.may_be_told(spelling)
        fits = told or wanted.fits(spelling, number or "")
        yield Kept(spelling.name) if fits else TooMuch(spelling.name, quoted(value), None)


def _number(spelling: Spelling, text: str) -> str | None:
    """Take the number out of a value written as *spelling* does; None if it is written otherwise."""
    before, after = spelling.around
    text = text.strip()
    if len(text) < len(before) + len(after) or not (text.startswith(before) and text.endswith(after)):
        return None
    return text[len(before) : len(text) - len(after)]


def _is_way_to_write(option: str, spelling: Spelling) -> bool:
    """Whether *option* is the argument: -f, --f, with dashes or underscores, or abbreviated."""
    written = _canonical(option)
    full, shortest = _ways(spelling.argument or "", spelling.shortest)
    return written.startswith(shortest) and full.startswith(written)


@cache
def _ways(argument: str, shortest: str | None) -> tuple[str, str]:
    return _canonical(argument), _canonical(shortest or argument)


@lru_cache(4096)  # the same options come again with every pod of a workload
def _canonical(option: str) -> str:
    return option.lstrip("-").replace("_", "-")
