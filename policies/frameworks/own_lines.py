"""
A user's own memory settings in variables that hold a command line: `VLLM_ARGS=--gpu-memory-utilization=0.95`.

A script of the image may put it behind its program. It is lowered where it stands as a program gets it, with neither
quotes nor references, so that no other variable says what it is.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from policies.changes import ReplaceVariable
from policies.frameworks.framework import Spelling
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.own_texts import OptionInText, Texts
from policies.frameworks.own_variables import LONGEST_LOWERED
from policies.frameworks.settings import SettingIndex
from policies.pod import Variable

_SEVERAL = re.compile(r"[;&|\n]")  # commands
_REST_OF_VALUE = re.compile(r"[^\s,;|&<>]*")


def in_lines(
    env: Sequence[Variable], places: Sequence[int], index: SettingIndex, judge: Judge, rewrite: Callable[[str], str]
) -> Iterator[OwnValue]:
    """Yield what the entries of `env` at *places* set, which are plain words; *rewrite* counts what is lowered."""
    texts = Texts(index, judge)
    for place in places:
        text = env[place].value or ""
        options = list(texts.options(text))
        told = _as_told(text, options)
        name = env[place].name
        lowered = _with_share(text, told, judge) if len(text) <= LONGEST_LOWERED else None
        options = options if lowered is None else told
        change = None if lowered is None else ReplaceVariable(place, name, rewrite(lowered))
        for one in options:
            change_of_one = change if one.found.is_to_lower else None
            yield msgspec.structs.replace(one.found, is_read=False, variable=name, change=change_of_one)
        for found in texts.assigned(text):
            yield msgspec.structs.replace(found, is_read=False, variable=name)


def _as_told(text: str, options: list[OptionInText]) -> list[OptionInText]:
    """Take abbreviations in one command for a framework's one of whose options is lowered in it."""
    frameworks = {one.found.framework for one in options if one.found.is_to_lower}
    if not frameworks or _SEVERAL.search(text):
        return options
    return [_told(one) if one.option.framework in frameworks else one for one in options]


def _told(one: OptionInText) -> OptionInText:
    framework, written = one.option.setting
    if one.found.framework is not None or not isinstance(written, Spelling):
        return one
    found = msgspec.structs.replace(one.found, name=written.name, framework=framework, is_certain=True, fix="")
    return one._replace(found=found)


def _with_share(text: str, options: list[OptionInText], judge: Judge) -> str | None:
    """Write the share for what is lowered in a *text*; None if that is nothing, or not each in its own place."""
    lowered, at = "", 0
    for one in options:
        if not one.found.is_to_lower:
            continue
        if one.start < at:
            return None
        lowered += text[at : one.start] + judge.text(one.option.setting)
        at = one.start + len(one.value)
        if one.is_cut and (rest := _REST_OF_VALUE.match(text, at)):
            at = rest.end()
        elif "." not in one.value and text.startswith(".", at):  # of `1.`, and of no sentence
            at += 1
    return f"{lowered}{text[at:]}" if at else None
