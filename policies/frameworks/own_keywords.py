"""
A user's own memory settings as keywords of a program's arguments: `gpu_memory_utilization=0.95`, and members of JSON.

Whoever reads them, they are never lowered, and none stands for the option: a text may only speak of it.
"""

import re
from collections.abc import Iterator
from typing import Final

from policies.frameworks.expansion import KINDS, UNREAD
from policies.frameworks.framework import Spelling
from policies.frameworks.judge import Judge, OwnValue, shown
from policies.frameworks.own_options import strictest
from policies.frameworks.settings import SettingIndex, whole

_IN_NAME = re.compile(r"[\w-]")
_NUMBER: Final = r"[+-]?(?:[\d_]++\.?+[\d_]*+|\.[\d_]++)(?:[eE][+-]?\d++)?(?![\w*/%+-])"
_ASSIGNED = re.compile(rf"[ \t]*(?:=(?!=)|:)[ \t]*({_NUMBER}|{UNREAD}[{KINDS}])")


def in_keywords(text: str, index: SettingIndex, judge: Judge) -> Iterator[OwnValue]:
    """Yield what the plain words of a text set by keywords, with numbers that are written out or a reference."""
    for name, places in index.keywords_in(text).items():
        for at in places:
            judge.count()
            match = _ASSIGNED.match(text, at + len(name))
            if match and not (at and _IN_NAME.match(text, at - 1)):
                yield from _judged(name, whole(match[1]), index, judge)


def _judged(name: str, value: str, index: SettingIndex, judge: Judge) -> Iterator[OwnValue]:
    settings = [one.setting for one in index.of_option(name) if one.is_in_full and not one.setting.is_specific]
    spelled = [(one.framework, one.written) for one in settings if isinstance(one.written, Spelling)]
    found = (
        OwnValue(judge.verdict(of, written, value), name, shown(value), of, is_certain=False, is_read=False)
        for of, written in spelled
    )
    if chosen := strictest((one.framework, one) for one in found):
        yield chosen[1]
