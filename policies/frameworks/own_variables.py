"""A user's own memory settings in variables: in the environment of a container, or wherever else one is assigned."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from policies.changes import ReplaceVariable
from policies.frameworks.expansion import UNREAD, Variables
from policies.frameworks.framework import Override, Spelling
from policies.frameworks.judge import Judge, OwnValue, Verdict, number_in, shown
from policies.frameworks.own_options import strictest
from policies.frameworks.settings import Setting, SettingIndex
from policies.pod import Variable

LONGEST_LOWERED: Final = 4096  # characters of a variable that is looked through, and written anew


class Assigned(NamedTuple):
    """What a variable sets, and its value with that brought to the share; None where it cannot be."""

    found: OwnValue
    lowered: str | None = None


def in_environment(env: list[Variable], index: SettingIndex, variables: Variables, judge: Judge) -> Iterator[OwnValue]:
    """Yield what the entries of `env` set. Of equal names the last counts, so it alone can be without the share."""
    last = {index.variable(one.name): position for position, one in enumerate(env)}
    for position, one in enumerate(env):
        name = index.variable(one.name)
        if name not in index.variables:
            continue
        value = variables.at(position)
        for found, lowered in assigned(name, value, index, judge):
            change = None if lowered is None else ReplaceVariable(position, one.name, lowered)
            yield msgspec.structs.replace(found, change=change)
        if position == last[name] and (without := replaced(name, value, index, judge)) is not None:
            yield without


def replaced(name: str, value: str, index: SettingIndex, judge: Judge) -> OwnValue | None:
    """Say that *value* puts other settings in the place of the share, in a variable of several; None if it does not."""
    spelled = [one for one in index.variables[name] if isinstance(one.written, Spelling)]
    is_without = name in index.lists and spelled and UNREAD not in value
    packed = "".join(value.split())
    likely = judge.running(spelled) or spelled
    if not is_without or any(one.begin in packed for one in likely):
        return None
    setting = likely[0]
    return OwnValue("replaced", name, shown(value), setting.framework, fix=f"Add {judge.text(setting)} to it")


def assigned(name: str, value: str, index: SettingIndex, judge: Judge) -> Iterator[Assigned]:
    """Yield what the variable *name* sets by *value*; it is one of those in *index*."""
    judge.count()
    settings = index.variables[name]
    if len(value) > LONGEST_LOWERED:
        yield Assigned(OwnValue("unread", name, shown(value), settings[0].framework))
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
    found: list[Assigned] = []
    for setting in settings:
        more = list(_in_list(setting, value, judge))
        value = next((one.lowered for one in more if one.lowered is not None), value)
        found += more
    return [one if one.lowered is None else Assigned(one.found, value) for one in found]


def _alone(setting: Setting, value: str, judge: Judge) -> Assigned:
    """Judge a variable of one setting."""
    framework, written = setting
    assert isinstance(written, Spelling)  # noqa: S101 - for the type checker
    verdict = judge.verdict_of_all(framework, written, value)
    number = number_in(written, value)
    takes_all = verdict == "within" and number is not None and judge.takes_all(framework, written, number)
    found = OwnValue(verdict, written.name, shown(value), framework, takes_all=takes_all)
    return Assigned(found, None if judge.keeps(verdict) else judge.text(setting))


def _in_list(setting: Setting, value: str, judge: Judge) -> Iterator[Assigned]:
    """Judge a variable of several settings, most of which are others'. Spaces in it mean nothing."""
    framework, written = setting
    assert isinstance(written, Spelling)  # noqa: S101 - for the type checker
    packed = "".join(value.split())
    before, _ = written.around
    if UNREAD in packed:
        yield Assigned(OwnValue("unread", written.name, shown(value), framework))
        return
    if before not in packed:
        return
    items = packed.split(written.separator)
    verdicts: dict[int, Verdict] = {}
    for place, item in enumerate(items):
        if item.startswith(before) and (number := number_in(written, item)) is not None:
            judge.count()
            verdicts[place] = judge.verdict(framework, written, number)
    too_much = {place: verdict for place, verdict in verdicts.items() if verdict != "within"}
    for place in too_much:
        items[place] = judge.text(setting)
    if too_much:
        rewritten = written.separator.join(items)
        is_kept = "$" in rewritten or len(rewritten) > LONGEST_LOWERED  # it would be expanded once more, or not read
        lowered = None if is_kept else rewritten
        first = next(iter(too_much.values()))
        yield Assigned(OwnValue(first, written.name, shown(value), framework), lowered)
    elif verdicts:
        yield Assigned(OwnValue("within", written.name, shown(value), framework))


def _overrides(written: Override, value: str) -> bool:
    packed = "".join(value.split())
    items = packed.split(written.separator) if written.separator and written.begins in packed else [packed]
    harmless = [one.lower() for one in written.harmless]
    return any(
        item.startswith(written.begins) and item[len(written.begins) :].lower() not in harmless for item in items
    )
