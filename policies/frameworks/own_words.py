"""A user's own memory settings in the words of a command line, and in the texts among them that a shell may run."""

import re
from collections.abc import Iterator

import msgspec

from policies.changes import ReplaceArgument, ReplaceVariable
from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import UNREAD, Variables
from policies.frameworks.framework import Override, Spelling
from policies.frameworks.judge import LOWERED, Judge, OwnValue, number_in, shown
from policies.frameworks.own_variables import LONGEST_LOWERED, assigned
from policies.frameworks.settings import Option, SettingIndex
from policies.frameworks.shell.plain_words import BETWEEN
from policies.frameworks.unread_words import UnreadWords
from policies.pod import Variable

_FIX = 'Write it out, or as one word if it is another option\'s: --option=$(NAME), in a shell "--option=$NAME"'
_SHORTEN = "Put what prepares its start into a script of the image or of a ConfigMap that is mounted"
_OPTION = re.compile(r"--?[A-Za-z]")
_IN_NAME = re.compile(r"\w")
_LONGEST_VALUE = 512  # characters that are read behind a variable's name
_ASSIGNED = re.compile(r"(\+?[=:,\s]+(?:value[=:,\s]+)?)([^\s\x7f]*)")  # a member called value follows the name in YAML
_SPACE = re.compile(r"\s")
_REFERENCES = re.compile(r"(?:\$\([^()]*\)|\s)*")
_HAS_DIGITS = re.compile(r"[0-9]")
_BETWEEN_VALUES = re.compile("[,;]")


class Words:
    """The words of one container's command line, each of which is looked at once."""

    def __init__(self, line: CommandLine, index: SettingIndex, variables: Variables, judge: Judge) -> None:
        """Look at them with the variables that they refer to."""
        self._line = line
        self._index = index
        self._variables = variables
        self._judge = judge

    def own_values(self, env: list[Variable]) -> Iterator[OwnValue]:
        """Yield what the words set, one by one, and then what the texts among them and in the variables of *env* do."""
        texts = []
        inert = self._index.inert
        words = list(self._line.words)  # as the kubelet expands them
        for position, raw in enumerate(self._line.words):
            if raw in inert or self._index.is_inert(raw):
                continue
            word = words[position] = self._variables.in_words(raw)
            name, equals, value = word.partition("=")
            if word.startswith("-") and self._index.of_option(name):
                yield from self._in_word(position, word)
            elif equals and (known := self._index.variable(name)) in self._index.variables and not _SPACE.search(value):
                for found, lowered in assigned(known, value, self._index, self._judge):  # `env NAME=value`
                    change = None if lowered is None else self._replaced(position, f"{name}={lowered}")
                    yield msgspec.structs.replace(found, change=change)
            else:
                texts.append(word)
        hooks = [[self._variables.in_words(raw) for raw in hook] for hook in self._line.hooks]
        kept = self._index.texts_in(env)
        if texts or hooks or kept:
            unread = UnreadWords(self._variables, self._index)
            for position in kept:
                yield from self._in_variable(position, env[position], unread)
            self._look_at(words, hooks, unread)
            plain = [unread.plain(text) for text in dict.fromkeys(texts)]
            plain += [" ".join([unread.plain(word) for word in hook]) for hook in hooks]
            # Elsewhere a text may be anything, a prompt even, and then the program was told nothing.
            yield from self._in_text(BETWEEN.join(plain), is_read=self._line.runs_through_shell)
            if unread.start is not None:
                name, fix = f"an option {unread.start}…" if unread.start else "a word of its command line", _FIX
                if self._variables.is_spent:
                    name, fix = "a word of a shell's text (the pod's together are too long to be read)", _SHORTEN
                yield OwnValue("unread", name, shown(UNREAD), fix=fix)

    def _in_variable(self, position: int, variable: Variable, unread: UnreadWords) -> Iterator[OwnValue]:
        """Yield what is written in a variable that a script may put on a command line, or a shell runs."""
        text = self._variables.at(position)
        unread.look_at_variable(variable.name, text)
        if not self._index.has_setting(text) or _REFERENCES.fullmatch(variable.value or ""):
            return
        plain = unread.plain(text)
        found, lowered, at = [], "", 0
        for match in self._index.in_text.finditer(plain):
            option, value = self._option_in_text(match)
            one = self._judged(option, f"--{match[1]}", value) if value else None
            if one is not None:
                found.append(msgspec.structs.replace(one, is_read=False))
                if one.framework is not None and one.verdict in LOWERED:
                    lowered += plain[at : match.start(2)] + self._judge.text(option.setting)
                    at = match.start(2) + len(value)
        can_be = at > 0 and plain == variable.value and len(plain) <= LONGEST_LOWERED
        change = self._lowered(position, variable.name, lowered + plain[at:]) if can_be else None
        for one in found:
            yield msgspec.structs.replace(one, change=change if one.verdict in LOWERED else None)
        yield from self._assigned_in_text(plain, is_read=False)

    def _lowered(self, position: int, name: str, text: str) -> ReplaceVariable:
        return ReplaceVariable(position, name, self._variables.rewrite(text))

    def _look_at(self, words: list[str], hooks: list[list[str]], unread: UnreadWords) -> None:
        """Look at the command lines for what cannot be read."""
        for hook in hooks:
            unread.look_at(hook, is_command=True)
        if words:
            unread.look_at(words, is_command=self._line.has_command)

    def _option(self, name: str, value: str) -> Option:
        """Choose among the settings that *name* may be: the one that the *value* is written for, else the likeliest."""
        options = self._index.of_option(name)
        return self._judge.likeliest([one for one in options if _is_written_for(one, value)] or options)

    def _in_word(self, position: int, word: str) -> Iterator[OwnValue]:
        written, equals, value = word.partition("=")
        following = "" if equals else self._following(position)
        option = self._option(written, value or following)
        found = self._judged(option, written, value or following)
        if found is None:
            return
        if found.framework is not None and found.verdict in LOWERED:
            text = self._judge.text(option.setting)
            change = self._replaced(position + 1, text) if following else self._replaced(position, f"{written}={text}")
            found = msgspec.structs.replace(found, change=change)
        yield found

    def _following(self, position: int) -> str:
        """Return the word behind an option, if it is not an option itself."""
        if position + 1 == len(self._line.words):
            return ""
        word = self._variables.in_words(self._line.words[position + 1])
        return "" if _OPTION.match(word) else word

    def _replaced(self, position: int, text: str) -> ReplaceArgument | None:
        """Put *text* in the place of a word, but not where a shell runs it."""
        return None if self._line.runs_through_shell else self._line.replaced(position, text)

    def _in_text(self, text: str, *, is_read: bool) -> Iterator[OwnValue]:
        for match in self._index.in_text.finditer(text):
            option, value = self._option_in_text(match)
            found = self._judged(option, f"--{match[1]}", value)
            if found is not None:
                yield msgspec.structs.replace(found, is_read=is_read)
        yield from self._assigned_in_text(text, is_read=is_read)

    def _option_in_text(self, match: re.Match[str]) -> tuple[Option, str]:
        """Tell an option and its value in a text, where the next one may stand behind a comma: `["--a=1","--b"]`."""
        value = match[2].rstrip(",")
        option = self._option(match[1], value)
        return option, value if option.setting.is_specific else _first(value)

    def _assigned_in_text(self, text: str, *, is_read: bool) -> Iterator[OwnValue]:
        for name in self._index.variables:
            at = text.find(name)
            while at >= 0:
                self._judge.count()
                end = at + len(name)
                how, value = _value_behind(text[end : end + _LONGEST_VALUE])
                is_name = not (at and _IN_NAME.match(text, at - 1))
                if is_name and how and ("=" in how or _HAS_DIGITS.search(value)):  # `setenv NAME 0.9`, or a sentence
                    value = value if self._is_list(name) else _first(value)
                    for found, _ in assigned(name, value, self._index, self._judge):
                        yield msgspec.structs.replace(found, is_read=is_read)
                at = text.find(name, end)

    def _is_list(self, name: str) -> bool:
        """Whether the variable *name* holds several settings."""
        return any(one.written.separator for one in self._index.variables[name])

    def _judged(self, option: Option, written: str, value: str) -> OwnValue | None:
        """Judge the *value* of an option as it is *written*; None if it is another's."""
        self._judge.count()
        framework, setting = option.setting
        if isinstance(setting, Override):
            return None if value in setting.harmless else self._overriding(option, setting, written, value)
        number = number_in(setting, value)
        if number is None and option.setting.is_specific:  # the same option with another purpose
            return OwnValue("unread", setting.name, shown(value)) if UNREAD in value else None
        verdict = self._judge.verdict(framework, setting, value if number is None else number)
        if self._judge.is_certain(option):
            return OwnValue(verdict, setting.name, shown(value), framework)
        if verdict == "within" or not self._judge.may_be(option, value):
            return None
        return _uncertain(setting, written, value, fix=f"Write {setting.name}, or call another option otherwise")

    def _overriding(self, option: Option, setting: Override, written: str, value: str) -> OwnValue | None:
        """Judge an option that makes a framework ignore its fraction, or an abbreviation of one; None if another's."""
        if self._judge.is_certain(option) or self._judge.has_name_of(option.framework):
            return OwnValue("overriding", setting.name, shown(value), option.framework)
        if option.is_in_full or not self._judge.may_override(value):
            return None
        return _uncertain(setting, written, value, fix="Remove it, or write another option in full")


def _uncertain(setting: Spelling | Override, written: str, value: str, *, fix: str) -> OwnValue:
    return OwnValue("unread", f"{written}, which may stand for {setting.name},", shown(value), fix=fix)


def _first(value: str) -> str:
    """Cut a value where a list goes on: no number has such a sign in it."""
    return _BETWEEN_VALUES.split(value, maxsplit=1)[0] or value


def _is_written_for(option: Option, value: str) -> bool:
    written = option.setting.written
    return option.setting.is_specific and isinstance(written, Spelling) and number_in(written, value) is not None


def _value_behind(text: str) -> tuple[str, str]:
    """Split what stands behind a variable's name in a text: what may assign it, and its value."""
    start = text[:1]
    for sign in ":,":  # spaces beside them mean nothing
        text = sign.join(map(str.strip, text.split(sign)))
    if start.isspace():
        text = f"{start}{text}"
    match = _ASSIGNED.match(text)
    return (match[1], match[2]) if match else ("", "")
