"""An option of a command line or a text: whose memory setting it is, and whether its value is within the share."""

import re
from collections.abc import Iterable
from typing import Final, TypeVar

from policies.frameworks.expansion import UNREAD
from policies.frameworks.framework import Override, Spelling
from policies.frameworks.judge import KEPT, Judge, OwnValue, Verdict, number_in, shown
from policies.frameworks.settings import Option, SettingIndex

Place = TypeVar("Place")
_IN_VALUE: Final = re.compile(r"[\w.,:=/-]")  # and no sign of which something else may be made


def options_of(name: str, value: str, index: SettingIndex, judge: Judge) -> list[Option]:
    """List the settings that *name* may be: those that the *value* is written for, else those of what runs here."""
    options = index.of_option(name)
    likely = [one for one in options if _is_written_for(one, value)] or options
    return judge.running(likely) or likely


def strictest(found: Iterable[tuple[Place, OwnValue | None]]) -> tuple[Place, OwnValue] | None:
    """Give the first of what one name may set that does not stay, else the first; None if there is none."""
    kept: tuple[Place, OwnValue] | None = None
    for place, one in found:
        if one is not None and one.verdict not in KEPT:
            return place, one
        if one is not None and kept is None:
            kept = place, one
    return kept


def judged(option: Option, written: str, value: str, judge: Judge) -> OwnValue | None:
    """Judge the *value* of an option as it is *written*; None if it is another's."""
    judge.count()
    framework, setting = option.setting
    if isinstance(setting, Override):
        return None if value in setting.harmless else _overriding(option, setting, written, value, judge)
    number = number_in(setting, value)
    if number is None and option.setting.is_specific:  # the same option with another purpose
        return OwnValue("unread", setting.name, shown(value)) if _may_become_one_for(setting, value) else None
    verdict = judge.verdict(framework, setting, value if number is None else number)
    if not (option.is_in_full or option.setting.is_specific or judge.may_start_with(option, value)):
        return None  # the framework does not start with it, and it may be another program's
    if judge.is_certain(option):
        takes_all = verdict == "within" and judge.takes_all(framework, setting, value if number is None else number)
        return OwnValue(verdict, setting.name, shown(value), framework, takes_all=takes_all)
    if verdict == "within" or not (judge.may_be(option, value) or judge.has_name_of(framework)):
        return None
    fix = f"Lower it to the share, write {setting.name} where that is meant, or call another option otherwise"
    return _uncertain(verdict, setting, written, value, fix=fix)


def _overriding(option: Option, setting: Override, written: str, value: str, judge: Judge) -> OwnValue | None:
    """Judge an option that makes a framework ignore its fraction, or an abbreviation of one; None if another's."""
    if judge.is_certain(option) or judge.has_name_of(option.framework):
        return OwnValue("overriding", setting.name, shown(value), option.framework)
    if option.is_in_full or not judge.may_override(value):
        return None
    return _uncertain("unread", setting, written, value, fix="Remove it, or write another option in full")


def _uncertain(verdict: Verdict, setting: Spelling | Override, written: str, value: str, *, fix: str) -> OwnValue:
    return OwnValue(verdict, f"{setting.name} (by {written})", shown(value), is_certain=False, fix=fix)


def _may_become_one_for(setting: Spelling, value: str) -> bool:
    """Whether a *value* may be the setting's, as far as it can be read: `python,x=$(X)` is another backend's."""
    known, mark, _ = value.lstrip().partition(UNREAD)
    another = next((one for one, its in zip(known, setting.around[0], strict=False) if one != its), "")
    return bool(mark) and not _IN_VALUE.match(another)


def _is_written_for(option: Option, value: str) -> bool:
    written = option.setting.written
    return isinstance(written, Spelling) and any(written.around) and number_in(written, value) is not None
