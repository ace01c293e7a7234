"""
A user's own memory settings in texts: what a shell may run, and what a script may put on a command line.

The texts are those of `shell.plain_words`, without quotes and brackets, with the signs that end a shell's command.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from policies.frameworks.expansion import A_NUMBER, A_VALUE, UNREAD
from policies.frameworks.framework import Override, Spelling
from policies.frameworks.judge import Judge, OwnValue
from policies.frameworks.lists_in_texts import LONGEST_FIRST, ListsInText, begins_an_item, first_of_list
from policies.frameworks.own_options import judged, options_of, strictest
from policies.frameworks.own_variables import assigned, packed
from policies.frameworks.settings import LONGEST_VALUE, Option, SettingIndex, whole
from policies.frameworks.shell.plain_words import POSSIBLE
from policies.frameworks.shell.rest import HELD, REST

_ENDS_COMMAND: Final = (";", "|", "&&")
_ELSEWHERE: Final = "a value that is not behind it"
_FIX: Final = "Write its value behind it, or name it in no text that a shell runs"
_EMPTY: Final = "nothing, as far as the text says"
_FIX_OF_EMPTY: Final = (
    "Give what it is set to a default, ${NAME:-0.1}, since a framework takes an empty one for its own"
)
_JOINED: Final = "what may go on a setting before it"
_FIX_OF_JOINED: Final = (
    "Begin what `+=` adds with the sign between settings and the name of one, or write all of it with `=`"
)
_ENDS_VALUE = re.compile("[,;|&<>]")  # no number has such a sign in it
_ENDS_SENTENCE: Final = ".!?"
_SPECIFIC = re.compile(  # `tensorflow,gpu-memory-fraction=0.2`, or what may become one
    rf"[^,;|&<>]*(?:,(?:[\w.-]+=|[\w.-]*(?={UNREAD}))[^,;|&<>]*)?"
)
_DIGIT = re.compile(r"\d")
# What else stands behind an option or a variable is another command, a pattern, or a sentence that goes on.
_NUMBER = re.compile(rf"[+-]?(?:\.?[\d{UNREAD}]|(?:nan|inf(?:inity)?)\Z)", re.IGNORECASE)
_DIGITS: Final = r"\d(?:_?\d)*"  # as Python reads them
_IN_DOCUMENT = re.compile(  # `<arg>--a</arg><arg>0.2</arg>`
    rf"(?<=[:>=])\+?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
)
_OF_NUMBER = re.compile(r"[\d_.eE+-]*")
_OPTION = re.compile(r"-+[A-Za-z]")
# A document does not go on with another option, a URL, a parameter of one (`&quot;` is none) or a file for the output.
_ENDS_DOCUMENT = re.compile(rf"(?<![\w!-]){_OPTION.pattern}|://|^&(?!#?\w+;)|^>(?![\d.:=+]|.*<)")
_VALUE: Final = rf"([^\s\x7f]{{0,{LONGEST_VALUE + 1}}})"
# What stands between a variable and its value; a member called value follows the name in YAML.
_ASSIGNING = re.compile(rf"(\+?[=:,\s]+(?:value[=:,\s]+)?){_VALUE}")
_EMPTYING = re.compile(r"\+?=\s")  # which no number follows
_ASSIGNING_BEHIND_OPTION = re.compile(rf"([=:,\s\x7f]+){_VALUE}")  # mpiexec -genv NAME value
_SETTING = re.compile(r"(?:^|[\s\x7f])(?:setenv|(?!-u|--unset)-[\w-]*)[\s\x7f]+$", re.ASCII)
_LONGEST_SETTING: Final = 32  # characters of such a word in front of a name, with what is between them
_IN_NAME = re.compile(r"\w")
_GLUED = re.compile(r"(?<![\w-])-[A-Za-z]{1,4}$")  # `su -lcNAME=value`
_LONGEST_GLUED: Final = 6


class _Region(NamedTuple):
    """A part of a text."""

    text: str
    begin: int
    end: int


class OptionInText(NamedTuple):
    """An option in a text, the place and length of its value, and what it sets."""

    option: Option
    start: int
    value: str
    is_cut: bool  # it goes on behind what is looked at
    found: OwnValue


class Texts:
    """Finds the settings in texts."""

    def __init__(self, index: SettingIndex, judge: Judge) -> None:
        """Look for those of *index*."""
        self._index = index
        self._judge = judge
        self._lists = ListsInText("")  # of the one that is looked at

    def settings(self, text: str, *, is_run: bool) -> Iterator[OwnValue]:
        """Yield what a text sets by options and by variables; *is_run*: a shell runs it."""
        for one in self.options(text, is_run=is_run):
            yield msgspec.structs.replace(one.found, is_read=is_run)
        for found in self.assigned(text, is_run=is_run):
            yield msgspec.structs.replace(found, is_read=is_run)

    def options(self, text: str, *, is_run: bool = False) -> Iterator[OptionInText]:
        """Yield the options in a text; one without a value may have it elsewhere if *is_run*, or is in a sentence."""
        certain_to = _end_of_certain(text)
        for match in self._index.in_text.finditer(text):
            is_long = len(match[2]) > LONGEST_VALUE
            behind = match[2] if is_long else match[2].rstrip("," if is_run else ",.:")
            options = options_of(match[1], behind, self._index, self._judge)
            chosen = strictest(self._as_option(one, match, behind, is_run=is_run) for one in options)
            if chosen is not None:
                (option, start, value), found = chosen
                found = _told(found, is_certain=match.start() < certain_to)
                yield OptionInText(option, start, value, _is_cut(match, start, value), found)

    def _as_option(
        self, option: Option, match: re.Match[str], behind: str, *, is_run: bool
    ) -> tuple[tuple[Option, int, str], OwnValue | None]:
        """Judge a match as *option*, with the place and the text of its value."""
        value, start = _value_of(option, behind), match.start(2)
        if _is_fraction(option) and not _NUMBER.match(value):
            document = "" if is_run else _ENDS_DOCUMENT.split(value, maxsplit=1)[0]
            number = _IN_DOCUMENT.search(document)
            value, start = (number[0], start + number.start()) if number else ("", start)
        if value or not _is_fraction(option):
            known = value.replace(A_NUMBER, A_VALUE)  # ksh computes others than whole ones, and tools may be anybody's
            found = judged(option, f"--{match[1]}", whole(known) if _is_fraction(option) else known, self._judge)
            is_within = found is None or found.verdict == "within"
            if is_within and _is_cut(match, start, value) and _is_of_setting(option, value):
                found = judged(option, f"--{match[1]}", UNREAD, self._judge)
            return (option, start, value), found
        return (option, start, value), self._without_value(option, is_run=is_run)

    def _without_value(self, option: Option, *, is_run: bool) -> OwnValue | None:
        self._judge.count()
        if not (is_run and self._judge.is_certain(option)):
            return None
        return OwnValue("unread", option.setting.written.name, _ELSEWHERE, fix=_FIX)

    def assigned(self, text: str, *, is_run: bool = False) -> Iterator[OwnValue]:
        """Yield what a text sets by variables: `NAME=value`, `setenv NAME value`, or a member of JSON or YAML."""
        certain_to = _end_of_certain(text)
        self._lists = ListsInText(text)
        for name, places in self._index.variables_in(text).items():
            for at, following in pairwise((*places, len(text))):
                self._judge.count()
                if not _is_whole_name(text, at):
                    continue
                behind = _Region(text, at + len(name), following)
                for found in self._assigned(name, behind, is_set=_is_set(text, at), is_run=is_run):
                    yield _told(found, is_certain=at < certain_to)

    def _assigned(self, name: str, behind: _Region, *, is_set: bool, is_run: bool) -> Iterator[OwnValue]:
        """Judge what stands *behind* a variable's name; *is_set*: the word in front says that its value does."""
        match = (_ASSIGNING_BEHIND_OPTION if is_set else _ASSIGNING).match(*behind)
        if match is None:
            return
        how, value = match.groups()
        if "=" not in how and not self._is_value(name, value, is_told=is_set or ":" in how):
            return
        if name in self._index.lists:
            if how.startswith("+") and not self._begins_an_item(name, match.start() + len("+="), behind):
                yield OwnValue("unread", name, _JOINED, fix=_FIX_OF_JOINED)
            at = match.start(2) + (len(HELD) if value.startswith(HELD) else 0)
            yield from self._in_list(name, behind._replace(begin=at))
            return
        value = _ENDS_VALUE.split(value if is_run else value.rstrip(_ENDS_SENTENCE), maxsplit=1)[0] or value
        if name not in self._index.numbers or _NUMBER.match(value):
            known = whole(value) if name in self._index.numbers else value
            yield from () if value == REST else self._judged(name, known)
        elif is_run:
            is_empty = not value or _EMPTYING.match(how) is not None
            what, fix = (_EMPTY, _FIX_OF_EMPTY) if is_empty else (_ELSEWHERE, _FIX)
            yield OwnValue("unread", name, what, is_empty=is_empty, fix=fix)

    def _begins_an_item(self, name: str, at: int, behind: _Region) -> bool:
        """Whether what is joined to a list is settings of their own, and goes on no name and no number before it."""
        sign, _ = self._index.lists[name]
        return begins_an_item(behind.text, sign, at, behind.end)

    def _in_list(self, name: str, behind: _Region) -> Iterator[OwnValue]:
        """Judge the settings of a list, in which spaces beside a sign mean nothing."""
        sign, members = self._index.lists[name]
        behind = behind._replace(end=self._lists.end(sign, behind.begin, behind.end))
        written = first_of_list(behind.text, sign, behind.begin, behind.end)
        first, is_longer = packed(written), len(written) == LONGEST_FIRST
        if UNREAD in first or (is_longer and behind.text.find(UNREAD, behind.begin, behind.end) >= 0):
            found = list(self._judged(name, UNREAD if is_longer else first))
            if any(one.verdict in ("unread", "any") for one in found):
                yield from found
                return
        for begin, pattern in members.items():
            for member in pattern.finditer(*behind) if self._lists.may_have(begin, behind.begin, behind.end) else ():
                yield from self._judged(name, whole(begin + packed(member[1])))

    def _is_value(self, name: str, value: str, *, is_told: bool) -> bool:
        """Whether *value* is one of the variable *name*, and does not go on a sentence; *is_told*: a sign says so."""
        if name not in self._index.numbers:
            return is_told or _DIGIT.search(value) is not None
        return _NUMBER.match(value) is not None and (is_told or UNREAD not in value)

    def _judged(self, name: str, value: str) -> Iterator[OwnValue]:
        for found, _ in assigned(name, value, self._index, self._judge):
            yield found


def _end_of_certain(text: str) -> int:
    """Return where what is only possible begins in a text."""
    at = text.find(POSSIBLE)
    return at if at >= 0 else len(text)


def _told(found: OwnValue, *, is_certain: bool) -> OwnValue:
    return found if is_certain else msgspec.structs.replace(found, is_certain=False)


def _value_of(option: Option, text: str) -> str:
    """Cut what stands behind an option where the command or its word ends; "" if nothing of it is a value."""
    if text.startswith(_ENDS_COMMAND):
        return ""
    if option.setting.is_specific:
        match = _SPECIFIC.match(text)
        return match[0] if match else ""
    if isinstance(option.setting.written, Override) and _OPTION.match(text):
        return ""
    return _ENDS_VALUE.split(text, maxsplit=1)[0] or text


def _is_fraction(option: Option) -> bool:
    return isinstance(option.setting.written, Spelling) and not option.setting.is_specific


def _is_of_setting(option: Option, value: str) -> bool:
    """Whether a value is the setting's by how it begins; that of an override is whatever it is."""
    return isinstance(option.setting.written, Spelling) and value.startswith(option.setting.begin)


def _is_cut(match: re.Match[str], start: int, value: str) -> bool:
    """Whether a value that begins at *start* goes on behind what is looked at, or may."""
    rest = match[2][start + len(value) - match.start(2) :]
    return len(match[2]) > LONGEST_VALUE and _OF_NUMBER.fullmatch(rest) is not None


def _is_whole_name(text: str, at: int) -> bool:
    """Whether a variable's name begins at *at*, and not in the middle of a longer one."""
    is_inside = at > 0 and _IN_NAME.match(text, at - 1) is not None
    return not is_inside or _GLUED.search(text[max(0, at - _LONGEST_GLUED) : at]) is not None


def _is_set(text: str, at: int) -> bool:
    """Whether the word in front of *at* says that the next two are a variable and its value."""
    return _SETTING.search(text[max(0, at - _LONGEST_SETTING) : at]) is not None
