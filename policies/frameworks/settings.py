"""Every memory setting of every framework, by the words and the variables in which it can stand."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import KINDS, UNREAD
from policies.frameworks.framework import Framework, Memory, Override, Spelling
from policies.frameworks.option_pattern import Names, in_text
from policies.frameworks.written_form import canonical
from policies.pod import Container, Variable

FUNCTION_OF_BASH = "BASH_FUNC_"  # how a variable's name begins that bash takes for a function
LONGEST_VALUE = 64  # characters in a text
_MOST_KEPT = 8192
_LONGEST_KEPT = 128  # characters
# Programs that take words from a file or their input, or variables from a program: no inert words.
TAKING: Final = ("xargs", "doas", "env", "runuser", "setpriv", "su", "sudo")
_GOES_ON = r"(?:\.?\d++|[eE][+-]?(?:\d++|\s))(?![<>])"  # of a number in which there are spaces; `2>` is none
_UNREAD = re.compile(rf"\A(?:(?>{UNREAD}[{KINDS}] ?))++")  # what a word begins with
# What the kubelet or a shell would make something else of, or what ends a word in a text.
_SPECIAL = re.compile(r"[\0\s\x7f\"'\\$`(){}\[\];&|<>]")


class Setting(NamedTuple):
    """One way to write a memory setting of one framework, or what makes the framework ignore it."""

    framework: Framework
    written: Spelling | Override

    @property
    def is_specific(self) -> bool:
        """Whether its value says already whose it is, such as `tensorflow,gpu-memory-fraction=0.2`."""
        return isinstance(self.written, Spelling) and self.written.value != "{fraction}"

    @property
    def begin(self) -> str:
        """What its value begins with, where a variable holds several."""
        return self.written.around[0] if isinstance(self.written, Spelling) else self.written.begins

    @property
    def is_general(self) -> bool:
        """Whether other programs have an argument of this name as well."""
        return isinstance(self.written, Override) and self.written.general


class Option(NamedTuple):
    """What an option on a command line may be."""

    setting: Setting
    is_in_full: bool  # not abbreviated

    @property
    def framework(self) -> Framework:
        """Whose it is."""
        return self.setting.framework


class SettingIndex:
    """The settings of a catalogue. It is built once, so that a look at a container costs what its words do."""

    def __init__(self, frameworks: Iterable[Framework]) -> None:
        """Collect them."""
        self.variables: dict[str, list[Setting]] = {}
        self.options: dict[str, list[Option]] = {}
        self._lengths: dict[str, int] = {}
        frameworks = tuple(frameworks)
        for framework in frameworks:
            if framework.memory is None:
                continue
            for spelling in framework.memory.spellings:
                self._add(Setting(framework, spelling))
            for override in framework.memory.overridden_by:
                self._add(Setting(framework, override))
        self._names = frozenset(self.variables)
        memories = [one.memory for one in frameworks if one.memory and one.memory.exclusive]
        self.exclusive = _beside_each_other(memories)
        self._option_prefixes = tuple(prefix for one in frameworks for prefix in one.option_prefixes)
        self._in_all_names = "_" if all("_" in name for name in self.variables) else ""
        self._in_texts = Names(self.variables)
        self.framework_names = [one.name for one in frameworks if one.memory and one.memory.spellings[0].argument]
        self.names_framework = Names(self.framework_names).any_in
        self.inert: set[str] = set()  # words that set nothing, whatever stands beside them
        self.begun = frozenset(name[:end] for name in self.options for end in range(len(name) + 1))
        self._before_numbers = frozenset(
            start for one in self.begun if one[-1:].isdigit() for start in (one[:-1], one[:-1].removesuffix("-"))
        )
        self.in_text = in_text(self._lengths, LONGEST_VALUE + 1)
        self.numbers = {name for name, settings in self.variables.items() if _is_number(settings)}
        self.lists = {name: found for name, settings in self.variables.items() if (found := _members(settings))}

    def _add(self, setting: Setting) -> None:
        written = setting.written
        if written.variable is not None:
            self.variables.setdefault(written.variable, []).append(setting)
            return
        full = canonical(written.argument or "")
        shortest = len(canonical(written.shortest or full))
        self._lengths[full] = min(shortest, self._lengths.get(full, shortest))
        for end in range(shortest, len(full) + 1):
            self.options.setdefault(full[:end], []).append(Option(setting, end == len(full)))

    def variable(self, name: str) -> str:
        """Write the *name* of a variable as the catalogue does: servers that make options of theirs read any case."""
        if not name.startswith(self._option_prefixes):
            return name
        for prefix in self._option_prefixes:
            if name.startswith(prefix):
                break
        return prefix + name.removeprefix(prefix).upper().replace("-", "_")

    def are_inert(self, container: Container, line: CommandLine) -> bool:
        """Whether a container is known to set nothing. The fast way for the pods that come again and again."""
        if line.hooks or not self.inert.issuperset(line.words):
            return False
        if not container.env:
            return True
        names = map(self.variable, [one.name for one in container.env])
        return self._names.isdisjoint(names) and not self.texts_in(container.env)

    def texts_in(self, env: Sequence[Variable]) -> list[int]:
        """List the places in *env* of values that may be a command line, or a part of it, with a setting in it."""
        # One look at all values rules out those of almost every container. No setting has the end of a line in it.
        has_function = any(one.name.startswith(FUNCTION_OF_BASH) for one in env)
        if not has_function and not self._may_be_text("\n".join([one.value or "" for one in env])):
            return []
        return [place for place, one in enumerate(env) if self.is_text(one)]

    def is_text(self, variable: Variable) -> bool:
        """Whether the value of a variable may be such a text; a setting of its own is none."""
        is_function = variable.name.startswith(FUNCTION_OF_BASH)
        is_own = self.variable(variable.name) in self.variables
        return is_function or (not is_own and self._may_be_text(variable.value or ""))

    def _may_be_text(self, text: str) -> bool:
        return "$" in text or "`" in text or self.has_setting(text)

    def has_setting(self, text: str) -> bool:
        """Whether a setting is written in *text*."""
        return self.in_text.search(text) is not None or self.names_variable(text)

    def names_variable(self, text: str) -> bool:
        """Whether the name of a variable stands in *text*."""
        return self._in_all_names in text and self._in_texts.any_in(text)  # most have none, and names are many

    def variables_in(self, text: str) -> dict[str, list[int]]:
        """Return where each of the variables that *text* names stands in it."""
        return self._in_texts.places_in(text) if self._in_all_names in text else {}

    def is_inert(self, word: str) -> bool:
        """Whether *word* sets nothing. The words of a workload come again with every pod, so it is asked once."""
        if word in self.inert:
            return True
        if len(word) > _LONGEST_KEPT or _SPECIAL.search(word) or word.endswith(TAKING):
            return False
        if self.of_option(word.partition("=")[0]) and word.startswith("-"):
            return False
        if self.has_setting(word):
            return False
        if self.variable(word.partition("=")[0]) in self.variables:
            return False
        if len(self.inert) >= _MOST_KEPT:  # hostile words are kept from filling the memory
            self.inert.clear()
        self.inert.add(word)
        return True

    def of_option(self, option: str) -> list[Option]:
        """List what *option* may be: written -f or --f, with dashes or underscores, or abbreviated."""
        return self.options.get(canonical(option), [])

    def takes_next(self, word: str) -> bool:
        """Whether the word behind *word* may be the value of a setting."""
        word = _UNREAD.sub("", word, count=1)  # it may be nothing
        return word in self.variables or (word.startswith("-") and bool(self.of_option(word)))

    def may_become_one(self, start: str) -> bool:
        """Whether an option that starts so, and goes on unread, may be one of the settings."""
        return canonical(start) in self.begun

    def has_number_behind(self, start: str) -> bool:
        """Whether one of the settings is an option that starts so, and goes on with a digit, or a dash and a digit."""
        return canonical(start) in self._before_numbers


def _beside_each_other(memories: Iterable[Memory]) -> dict[str, frozenset[str]]:
    """Return the names that each variable may not have beside it, of programs that stop at two."""
    beside: dict[str, frozenset[str]] = {}
    for names in ([one.name for one in memory.alike] for memory in memories):
        for name in names:
            beside[name] = beside.get(name, frozenset()).union(names) - {name}
    return beside


def _is_number(settings: list[Setting]) -> bool:
    """Whether a variable holds a number and nothing else."""
    return all(isinstance(one.written, Spelling) and not one.written.separator for one in settings)


def _members(settings: list[Setting]) -> tuple[str, dict[str, re.Pattern[str]]] | None:
    """
    Return what is between the settings in a variable, and what matches each of ours, by what it begins with.

    None if the variable holds one alone.
    """
    separators = {one.written.separator for one in settings} - {""}
    members = {one: _member(one) for one in sorted({one.begin for one in settings} - {""})}
    return (separators.pop(), members) if separators and members else None


def _member(begin: str) -> re.Pattern[str]:
    """Match a setting in a list that begins so, with spaces beside its signs, and its value."""
    first, *rest = (re.escape(one) for one in re.split("([:,;])", begin) if one)
    # PyTorch takes one sign for another, and brackets, which are spaces in a text.
    signs = {":": r"(?:(?>[:,]|[^\S\n]))++", ",": r"[^\S\n]*+,[^\S\n]*+", ";": r"[^\S\n]*+;[^\S\n]*+"}
    tolerant = "".join(signs.get(one, one) for one in rest)
    value = rf"[^\s,;]{{0,{LONGEST_VALUE + 1}}}"
    return re.compile(rf"{first}(?<![\w-]{first}){tolerant}({value}(?:[^\S\n]++(?={_GOES_ON}){value})?)")


def whole(value: str) -> str:
    """Return a *value* of a text; one that is longer than what was looked at cannot be read."""
    return value if len(value) <= LONGEST_VALUE else UNREAD
