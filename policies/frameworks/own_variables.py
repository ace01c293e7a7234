"""A user's own memory settings in the environment of a container."""

from collections.abc import Iterator
from typing import Final

from policies.changes import ReplaceVariable
from policies.frameworks.expansion import UNREAD, Variables
from policies.frameworks.framework import Override, Spelling
from policies.frameworks.judge import Judge, OwnValue, number_in, shown
from policies.frameworks.settings import Setting, SettingIndex
from policies.pod import Variable

LONGEST_LOWERED: Final = 4096  # characters of a variable that is written anew


def in_environment(env: list[Variable], index: SettingIndex, variables: Variables, judge: Judge) -> Iterator[OwnValue]:
    """Yield what the entries of `env` set, one by one: of equal names the last one counts."""
    known = index.variables
    for position, variable in enumerate(env):
        if variable.name not in known:
            continue
        judge.count()
        value = variables.at(position)
        settings = known[variable.name]
        if spelled := [one for one in settings if isinstance(one.written, Spelling)]:
            yield from _spelled(position, judge.likeliest(spelled), value, judge)
        for one in settings:
            if isinstance(one.written, Override) and _overrides(one.written, value):
                yield OwnValue("overriding", variable.name, shown(value), one.framework)


def _spelled(position: int, setting: Setting, value: str, judge: Judge) -> Iterator[OwnValue]:
    framework, written = setting
    assert isinstance(written, Spelling)  # noqa: S101 - for the type checker
    if written.separator:
        yield from _in_list(position, setting, value, judge)
        return
    # Alone in its variable, a value in another form (bytes, say) is the framework's, and cannot be read.
    number = number_in(written, value)
    if number is None:
        number = UNREAD if UNREAD in value else ""
    verdict = judge.verdict(framework, written, number)
    change = None if verdict == "within" else ReplaceVariable(position, written.name, judge.text(setting))
    yield OwnValue(verdict, written.name, shown(value), framework, change)


def _in_list(position: int, setting: Setting, value: str, judge: Judge) -> Iterator[OwnValue]:
    """Judge a variable of several settings, most of which are others'. Spaces in it mean nothing."""
    framework, written = setting
    assert isinstance(written, Spelling)  # noqa: S101 - for the type checker
    packed = "".join(value.split())
    before, _ = written.around
    if UNREAD in packed:
        yield OwnValue("unread", written.name, shown(value), framework)
        return
    if before not in packed:
        return
    if len(packed) > LONGEST_LOWERED:
        yield OwnValue("above", written.name, shown(value), framework)
        return
    items = packed.split(written.separator)
    verdicts = {}
    for place, item in enumerate(items):
        if item.startswith(before) and (number := number_in(written, item)) is not None:
            judge.count()
            verdicts[place] = judge.verdict(framework, written, number)
    for place, verdict in verdicts.items():
        if verdict != "within":
            items[place] = judge.text(setting)
    if "above" in verdicts.values():
        rewritten = written.separator.join(items)
        change = None if "$" in rewritten else ReplaceVariable(position, written.name, rewritten)
        yield OwnValue("above", written.name, shown(value), framework, change)
    elif verdicts:
        yield OwnValue("within", written.name, shown(value), framework)


def _overrides(written: Override, value: str) -> bool:
    packed = "".join(value.split())
    items = packed.split(written.separator) if written.separator and written.begins in packed else [packed]
    return any(
        item.startswith(written.begins) and item[len(written.begins) :].lower() not in written.harmless
        for item in items
    )
