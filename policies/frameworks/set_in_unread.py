"""What a text that no shell of admission's reads sets, as far as its plain words say."""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final

from policies.frameworks.expansion import UNREAD
from policies.frameworks.own_variables import LONGEST_LOWERED

_IN_NAME = re.compile(r"\w")
_VALUE: Final = rf"[^\s;&|]{{0,{LONGEST_LOWERED}}}+"
# What it is set to stands elsewhere, or is no value that is written out.
_SETTING_BEFORE = re.compile(
    r"(?<![\w-])(?:coproc|for|foreach|getopts|mapfile|printf\s+-v|read|readarray|select)\s[^;&|\n\x7f=]*\Z"
)
_REDIRECTED = re.compile(r" [<>]")  # behind `{NAME}`, of which plain words have a mark and a space
_LONGEST_BEFORE: Final = 96
_ASSIGNED = re.compile(rf"=({_VALUE})")
_SET = re.compile(rf"set(?:env|\s++-[A-Za-z-]++)\s++(\w++)\s++(?=[^\s;&|])({_VALUE})")


def is_set_otherwise(plain: str, at: int, end: int) -> bool:
    """Whether a shell sets the variable named from *at* to *end* by what is beside it: `for NAME in`, `{NAME}<`."""
    is_in_braces = plain[at - 1 : at] == UNREAD and _REDIRECTED.match(plain, end) is not None
    return is_in_braces or _SETTING_BEFORE.search(plain, max(0, at - _LONGEST_BEFORE), at) is not None


def set_in_unread(plain: str, named: Mapping[str, Sequence[int]], lists: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield which variables of several settings plain words set, by `NAME=`, `setenv` or `set -x`, and to what."""
    for name, places in named.items():
        for at in places if name in lists else ():
            match = _ASSIGNED.match(plain, at + len(name))
            if match and not (at and _IN_NAME.match(plain, at - 1)):
                yield name, match[1]
    for match in _SET.finditer(plain):
        if match[1] in lists:
            yield match[1], match[2]
