"""A user's own memory settings in variables: in the environment of a container, or wherever else one is assigned."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import msgspec

from policies.changes import ReplaceVariable
from policies.contract import SHARE_FRACTION
from policies.frameworks.expansion import UNREAD, Variables
from policies.frameworks.framework import Override, Spelling
from policies.frameworks.judge import Judge, OwnValue, Verdict, number_in, shown
from policies.frameworks.own_options import strictest
from policies.frameworks.settings import Setting, SettingIndex
from policies.pod import Variable

LONGEST_LOWERED: Final = 4096  # characters of a variable that is looked through, and written anew
_SPACES: Final = dict.fromkeys(map(ord, " \t\n\v\f\r"))
_SIGNS: Final = r",:;\[\]"  # between the names and the values of a list
_SIGN: Final = re.compile(f"[{_SIGNS}]")
_FIX: Final = f"Write all of it out, or its fraction as ${SHARE_FRACTION}"


class Assigned(NamedTuple):
    """What a variable sets, and its value with that brought to the share; None where it cannot be."""

    found: OwnValue
    lowered: str | None = None


def emptied(env: list[Variable], index: SettingIndex, variables: Variables) -> frozenset[str]:
    """Name the variables with nothing in them, as the last entries say: none for programs that would stop at two."""
    if index.exclusive.keys().isdisjoint([one.name for one in env]):
        return frozenset()
    last = {one.name: position for position, one in enumerate(env)}
    return frozenset(name for name in index.exclusive if name in last and not variables.at(last[name]))


def in_environment(env: list[Variable], index: SettingIndex, variables: Variables, judge: Judge) -> Iterator[OwnValue]:
    """Yield what the entries of `env` set. Of equal names the last counts, so it alone can be without the share."""
    last = {index.variable(one.name): position for position, one in enumerate(env)}
    for position, one in enumerate(env):
        name = index.variable(one.name)
        if name not in index.variables:
            continue
        value = variables.at(position)
        if not value and name in index.exclusive:
            continue
        for found, lowered in assigned(name, value, index, judge):
            change = None if lowered is None else ReplaceVariable(position, one.name, lowered)
            yield msgspec.structs.replace(found, change=change)
        if position == last[name] and (without := replaced(name, value, index, judge)) is not None:
            yield without


def replaced(name: str, value: str, index: SettingIndex, judge: Judge) -> OwnValue | None:
    """Say that *value* puts other settings in the place of the share, in a variable of several; None if it does not."""
    spelled = [one for one in index.variables[name] if isinstance(one.written, Spelling)]
    is_without = name in index.lists and spelled and UNREAD not in value
    likely = judge.running(spelled) or spelled
    if not is_without or any(one.begin in _as_items(one.begin, _spelling(one).separator, value) for one in likely):
        return None
    setting = likely[0]
    return OwnValue("replaced", name, shown(value), setting.framework, fix=f"Add {judge.text(setting)} to it")


def assigned(name: str, value: str, index: SettingIndex, judge: Judge) -> Iterator[Assigned]:
    """Yield what the variable *name* sets by *value*; it is one of those in *index*."""
    judge.count()
    settings = index.variables[name]
    if len(value) > LONGEST_LOWERED:
        if long := strictest((one, _unread(one, value, judge)) for one in settings):
            yield Assigned(long[1])
        return
    spelled = [one for one in settings if isinstance(one.written, Spelling)]
    yield from _in_lists([one for one in spelled if one.written.separator], value, judge)
    alone = [one for one in spelled if not one.written.separator]
    likely = (_alone(one, value, judge) for one in judge.running(alone) or alone)
    if chosen := strictest((one, one.found) for one in likely):
        yield chosen[0]
    for one in settings:
        if isinstance(one.written, Override) and _overrides(one.written, value):
            yield Assigned(OwnValue("overriding", name, shown(value), one.framework))


def _in_lists(settings: list[Setting], value: str, judge: Judge) -> list[Assigned]:
    """Judge a variable of several settings by all that may stand in it; each is lowered in what the others leave."""
    if not _is_read(settings, value, judge):  # it may hold whatever stands between them, and another of them
        return [Assigned(_unread(one, value, judge, fix=_FIX)) for one in settings]
    found: list[Assigned] = []
    for setting in settings:
        more = list(_in_list(setting, value, judge))
        value = next((one.lowered for one in more if one.lowered is not None), value)
        found += more
    return [one if one.lowered is None else Assigned(one.found, value) for one in found]


def _unread(setting: Setting, value: str, judge: Judge, *, fix: str = "") -> OwnValue:
    verdict = judge.unread(setting.framework, value)
    return OwnValue(verdict, setting.written.name, shown(value), setting.framework, is_empty=not value, fix=fix)


def _is_read(settings: list[Setting], value: str, judge: Judge) -> bool:
    """Whether each item of a list is written out, or is one of *settings* that is the told share."""
    if UNREAD not in value:
        return True
    items = {item for sign in {_spelling(one).separator for one in settings} for item in packed(value).split(sign)}
    return all(any(_is_told(one, item, judge) for one in settings) for item in items if UNREAD in item)


def _is_told(setting: Setting, item: str, judge: Judge) -> bool:
    number = number_in(_spelling(setting), item)
    return number is not None and judge.verdict(setting.framework, _spelling(setting), number) == "within"


def _alone(setting: Setting, value: str, judge: Judge) -> Assigned:
    """Judge a variable of one setting."""
    framework, written = setting.framework, _spelling(setting)
    verdict = judge.verdict_of_all(framework, written, value)
    number = number_in(written, value)
    takes_all = verdict == "within" and number is not None and judge.takes_all(framework, written, number)
    found = OwnValue(verdict, written.name, shown(value), framework, is_empty=not value, takes_all=takes_all)
    return Assigned(found, None if judge.keeps(verdict) else judge.text(setting))


def _in_list(setting: Setting, value: str, judge: Judge) -> Iterator[Assigned]:
    """Judge a variable of several settings, most of which are others'. Spaces in it mean nothing."""
    framework, written = setting.framework, _spelling(setting)
    before, _ = written.around
    listed = _as_items(before, written.separator, value)
    if before not in listed:
        return
    items = listed.split(written.separator)
    verdicts: dict[int, Verdict] = {}
    for place, item in enumerate(items):
        if item.startswith(before) and (number := number_in(written, item)) is not None:
            judge.count()
            verdicts[place] = judge.verdict(framework, written, number)
    too_much = {place: verdict for place, verdict in verdicts.items() if verdict != "within"}
    if too_much:
        others = False
        for place in verdicts:
            if place in too_much or UNREAD in items[place]:  # the told share has no value to write
                others |= _SIGN.search(items[place], len(before)) is not None
                items[place] = judge.text(setting)
        rewritten = written.separator.join(items)
        # It would be expanded once more, lose or have what is another setting's, or would not be read.
        is_kept = others or "$" in rewritten or UNREAD in rewritten or len(rewritten) > LONGEST_LOWERED
        lowered = None if is_kept else rewritten
        first = next(iter(too_much.values()))
        yield Assigned(OwnValue(first, written.name, shown(value), framework), lowered)
    elif verdicts:
        yield Assigned(OwnValue("within", written.name, shown(value), framework))


def _overrides(written: Override, value: str) -> bool:
    listed = _as_items(written.begins, written.separator, value)
    items = listed.split(written.separator) if written.separator and written.begins in listed else [listed]
    harmless = [one.lower() for one in written.harmless]
    return any(
        item.startswith(written.begins) and item[len(written.begins) :].lower() not in harmless for item in items
    )


def packed(value: str) -> str:
    """Write a variable of several settings without its spaces, which mean nothing: those of C's `isspace`."""
    return value.translate(_SPACES)


def _as_items(begin: str, separator: str, value: str) -> str:
    """
    Write a setting that begins so as an item of its own, wherever it stands in a list.

    PyTorch cuts the list at all of its signs, and looks at none of them: `a:b:NAME:1` and `NAME,1` set NAME to 1
    (c10/core/AllocatorConfig.h, ConfigTokenizer).
    """
    listed = packed(value)
    if not (separator and begin.endswith(":") and begin[:-1] in listed):
        return listed
    # A bracket may end the list of another setting: it stays.
    items = _name(begin).sub(lambda match: f"{match[1].strip(',:;')}{separator}{begin}", f"{separator}{listed}")
    return items.removeprefix(separator)


@cache
def _name(begin: str) -> re.Pattern[str]:
    return re.compile(rf"([{_SIGNS}]){re.escape(begin[:-1])}[{_SIGNS}]++")


def _spelling(setting: Setting) -> Spelling:
    assert isinstance(setting.written, Spelling)  # noqa: S101 - for the type checker
    return setting.written
