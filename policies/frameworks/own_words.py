"""A user's own memory settings in the words of a command line, and in the texts among them that a shell may run."""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain

import msgspec

from policies.changes import ReplaceArgument
from policies.frameworks.command_line import CommandLine
from policies.frameworks.expansion import UNREAD, Variables
from policies.frameworks.framework import Spelling
from policies.frameworks.judge import Judge, OwnValue, shown
from policies.frameworks.own_options import judged, options_of, strictest
from policies.frameworks.own_texts import Texts
from policies.frameworks.own_variables import assigned, replaced
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell.names import RUN_BY_SHELLS
from policies.frameworks.shell.own_configs import has_own_config, is_config, without_config
from policies.frameworks.shell.plain_words import is_plain, joined
from policies.frameworks.taken_variables import UNSETTING, fix, taken_by
from policies.frameworks.unread_words import UnreadWords
from policies.pod import Variable

_FIX = 'Write it out, or as one word if it is another option\'s: --option=$(NAME), in a shell "--option=$NAME"'
_SHORTEN = "Put what prepares its start into a script of the image or of a ConfigMap that is mounted"
_OPTION = re.compile(r"--?[A-Za-z]")
_DOCUMENT = re.compile(r"\s*[\[{\"]")
_LINE_END = re.compile(r"\\[nrt]")
# Of what stands in a document in JSON as the value of a member, or as the last one of a list.
_END_OF_TEXT = re.compile(r'"(?=\s*+(?:[}\]]|,\s*+\\*+"[^"\\]*+\\*+"\s*+:))')
_NUMBER = re.compile(  # and nothing else, since another program's word may begin with digits
    r"[+-]?(?:[\d_]+\.?[\d_]*|\.[\d_]+)(?:[eE][+-]?\d+)?%?"
)
_SPACE = re.compile(r"\s")
_ENDS_IN_TEXT = re.compile(r"[\s;|&<>\x7f]")
_REFERENCES = re.compile(r"(?:\$\([^()]*\)|\s)*")


class Words:
    """The words of one container's command line, each of which is looked at once."""

    def __init__(self, line: CommandLine, index: SettingIndex, variables: Variables, judge: Judge) -> None:
        """Look at them with the variables that they refer to."""
        self._line = line
        self._index = index
        self._variables = variables
        self._judge = judge
        self._texts = Texts(index, judge)
        self._lowered_at = -1  # the word that is lowered as another one's value
        self._lists: dict[tuple[str, str], None] = {}  # variables of several settings, and what they are set to

    def own_values(
        self, env: list[Variable], texts_at: list[int], plain_at: Collection[int], handed: Collection[str]
    ) -> Iterator[OwnValue]:
        """
        Yield what the words set, one by one, and then what the texts among them and those in *env* do.

        Those at *plain_at* are judged by `own_lines`, and here as far as shells run them. Of what the words take from
        the program, those variables that it would be *handed*.
        """
        words = list(self._line.words)  # as the kubelet expands them
        texts: list[str] = []
        yield from self._in_words(words, texts)
        hooks = [[self._variables.in_words(raw) for raw in hook] for hook in self._line.hooks]
        if texts or hooks or texts_at:
            unread = UnreadWords(self._variables, self._index)
            try:
                looked_at = {position for position in plain_at if env[position].name not in RUN_BY_SHELLS}
                for position in texts_at:
                    text = self._variables.at(position)
                    unread.look_at_variable(env[position].name, text)
                    if position not in looked_at:
                        yield from self._in_variable(text, env[position], unread)
                self._look_at(words, hooks, unread)
                yield from self._in_texts(texts, hooks, unread)
                yield from self._taken(unread, handed)
            finally:
                unread.end()
        yield from self._replaced_lists()

    def _in_texts(self, texts: list[str], hooks: list[list[str]], unread: UnreadWords) -> Iterator[OwnValue]:
        """Yield what the texts set, and what in them cannot be read."""
        read = str if self._line.runs_through_shell else _unescaped
        of_words = unread.plain_of(map(read, dict.fromkeys(texts)))
        of_hooks = (" ".join([unread.plain(word) for word in _said_of(hook)]) for hook in hooks)
        plain = joined(chain(of_words, of_hooks))
        # Elsewhere a text may be anything, a prompt even, and then the program was told nothing.
        yield from self._texts.settings(plain, is_run=self._line.runs_through_shell)
        if unread.start is not None:
            name, what = f"an option {unread.start}…" if unread.start else "a word of its command line", _FIX
            if self._variables.is_spent:
                name, what = "a word of a shell's text (the pod's together are too long to be read)", _SHORTEN
            yield OwnValue("unread", name, shown(UNREAD), fix=what)
        self._lists.update(unread.lists)
        yield from self._whole(unread.lists)

    def _in_words(self, words: list[str], texts: list[str]) -> Iterator[OwnValue]:
        """Yield what the words set, which are expanded in *words*; those that may be texts come to *texts*."""
        inert = self._index.inert
        has_config = self._line.has_command and has_own_config(self._line.words)
        for position, raw in enumerate(self._line.words):
            if raw in inert or position == self._lowered_at or self._index.is_inert(raw):
                continue
            word = words[position] = self._variables.in_words(raw)
            name, equals, value = word.partition("=")
            if has_config and is_config(word):
                texts.append(value)
            elif word.startswith("-") and self._index.of_option(name):
                yield from self._in_word(position, word)
            elif word.startswith(UNREAD) and self._index.takes_next(word):
                texts.append(f"{word} {self._following(position)}")
            elif (known := self._index.variable(name)) not in self._index.variables or _SPACE.search(value):
                texts.append(word)
            elif equals:
                yield from self._assigned(position, known, value, f"{name}=")  # `env NAME=value`
            elif (value_behind := self._value_behind(position, known, words)) is not None:
                yield from self._assigned(position + 1, known, value_behind)  # `mpiexec -genv NAME value`
            else:
                texts.append(word)

    def _taken(self, unread: UnreadWords, handed: Collection[str]) -> Iterator[OwnValue]:
        """Yield the variables of settings that a program would be started without."""
        taken = [taken_by(words) for words in unread.taking]
        for name in [one for one in handed if one in self._index.variables] if taken else ():
            settings = self._index.variables[name]
            spelled = [one for one in settings if isinstance(one.written, Spelling)]
            how = next(filter(None, (one.by(name) for one in taken)), "")
            if spelled and how:
                setting = self._judge.likeliest(spelled)
                yield OwnValue("taken", name, how, setting.framework, fix=fix(how, name, self._judge.text(setting)))

    def _replaced_lists(self) -> Iterator[OwnValue]:
        """Yield the variables of several settings that are set to others alone, each once."""
        without = (replaced(name, value, self._index, self._judge) for name, value in self._lists)
        yield from {one.name: one for one in without if one is not None}.values()

    def _whole(self, lists: Iterable[tuple[str, str]]) -> Iterator[OwnValue]:
        """Yield what lists are set to in which signs stand that end their value in the text, and not in quotes."""
        for name, value in lists:
            if _ENDS_IN_TEXT.search(value):
                for found, _ in assigned(name, value, self._index, self._judge):
                    yield msgspec.structs.replace(found, is_certain=False)

    def _in_variable(self, text: str, variable: Variable, unread: UnreadWords) -> Iterator[OwnValue]:
        """Yield what is written in a variable that a script may put on a command line, or a shell runs."""
        if not self._index.has_setting(text) or _REFERENCES.fullmatch(variable.value or ""):
            return
        plain = unread.plain(_unescaped(text))
        if plain == variable.value and is_plain(plain):  # looked at before, and lowered
            return
        for found in self._texts.settings(plain, is_run=False):
            yield msgspec.structs.replace(found, variable=variable.name)

    def _look_at(self, words: list[str], hooks: list[list[str]], unread: UnreadWords) -> None:
        """Look at the command lines for what cannot be read."""
        for hook in hooks:
            unread.look_at(hook, is_command=True)
        if words:
            unread.look_at(words, is_command=self._line.has_command)

    def _in_word(self, position: int, word: str) -> Iterator[OwnValue]:
        written, equals, value = word.partition("=")
        following = "" if equals else self._following(position)
        options = options_of(written, value or following, self._index, self._judge)
        chosen = strictest((one, judged(one, written, value or following, self._judge)) for one in options)
        if chosen is None:
            return
        option, found = chosen
        if found.is_to_lower:
            text = self._judge.text(option.setting)
            if following:
                self._lowered_at = position + 1
            change = self._replaced(position + 1, text) if following else self._replaced(position, f"{written}={text}")
            found = msgspec.structs.replace(found, change=change)
        yield found

    def _assigned(self, position: int, name: str, value: str, before: str = "") -> Iterator[OwnValue]:
        """Yield what the variable *name* sets by *value*, which is the word at *position* with what is *before* it."""
        if name in self._index.lists:
            self._lists[name, value] = None
        for found, lowered in assigned(name, value, self._index, self._judge):
            change = None if lowered is None else self._replaced(position, f"{before}{lowered}")
            yield msgspec.structs.replace(found, change=change)

    def _following(self, position: int) -> str:
        """Return the word behind an option, if it is not an option itself."""
        if position + 1 == len(self._line.words):
            return ""
        word = self._variables.in_words(self._line.words[position + 1])
        return "" if _OPTION.match(word) else word

    def _value_behind(self, position: int, name: str, words: list[str]) -> str | None:
        """Return the value that stands behind the name of a variable, if an option in front of it takes both."""
        before = words[position - 1] if position else ""
        if not before.startswith("-") or before in UNSETTING:
            return None
        value = self._following(position)
        if not value:
            return (
                "" if name in self._index.exclusive and self._line.words[position + 1 : position + 2] == [""] else None
            )
        is_in_list = name in self._index.lists and ":" in value  # else `-x NAME` hands it on, and a program follows
        is_another = name not in self._index.lists and name not in self._index.numbers
        return value if UNREAD in value or _NUMBER.fullmatch(value) or is_in_list or is_another else None

    def _replaced(self, position: int, text: str) -> ReplaceArgument | None:
        """Put *text* in the place of a word, but not where a shell runs it."""
        return None if self._line.runs_through_shell else self._line.replaced(position, text)


def _said_of(hook: list[str]) -> list[str]:
    return list(map(without_config, hook)) if has_own_config(hook) else hook


def _unescaped(text: str) -> str:
    """Write a document in JSON as a program reads it: with ends of lines, and one where a text in it ends."""
    if not _DOCUMENT.match(text):
        return text
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        msgspec.json.decode(text, type=msgspec.Raw)
        text = _END_OF_TEXT.sub('"\n', text)
    return _LINE_END.sub("\n", text)
