"""What commands take of the container's variables from what they start, as far as that may be a framework."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Final

from policies.frameworks.allowance import CHARACTERS_OF_STEP, MOST_STEPS
from policies.frameworks.command_line import SHELLS, unwrapped
from policies.frameworks.expansion import UNREAD, Variables
from policies.frameworks.set_in_unread import is_set_otherwise, set_in_unread
from policies.frameworks.settings import TAKING, SettingIndex
from policies.frameworks.shell.command_words import Call, CommandWords
from policies.frameworks.shell.options import behind_options, has_odd_option
from policies.frameworks.shell.reading import Reading
from policies.frameworks.shell.script import Command, Literal, Reference, Script, Word
from policies.frameworks.shell.split_string import split_by_env, ways_of_word
from policies.frameworks.shell.tools import is_python
from policies.frameworks.shell_calls import ShellCalls
from policies.frameworks.taken_variables import (
    commands_in,
    is_harmless,
    is_taking_program,
    may_take,
    names_taking,
    starts_shell,
    taken_in,
)

_STEPS_OF_TAKING: Final = 30  # variables from a program
_STEPS_OF_COMMAND: Final = 3
_FIRST_WORDS: Final = 32  # of what `env -S` splits, among which its program is in any real text
_WORDS_OF_STEP: Final = 2
_MORE_THAN_COUNTED: Final = _WORDS_OF_STEP * (MOST_STEPS + 1)
# What reads options or a text out of the words behind it.
_READING: Final = SHELLS.union(TAKING)
_INSTALLING: Final = frozenset({"add", "install"})  # of packages, whose names the words behind are
_OPTION = re.compile("-")
_TEXT_OPTION = re.compile(r"--[\w-]+[= ]?|-\w ?")
_BEFORE_TEXT = re.compile(r"-[a-z]*c|--command")  # of `script`, `flock` and others


class ShellTaking(ShellCalls):
    """Takes note of what starts a program without variables."""

    def __init__(self, variables: Variables, index: SettingIndex) -> None:
        """Read texts with *variables*, for the settings of *index*."""
        super().__init__(variables, index)
        self._of_tools: dict[str, bool] = {}  # whether a text starts tools and services alone
        self._appended: set[str] = set()  # arrays to which words that are not read were added

    def _append(self, array: str, words: Iterable[str]) -> None:
        """Take note of *words* that an array has behind others, perhaps behind what reads them."""
        if any(UNREAD in one for one in words):
            self._appended.add(array)
        every = chain.from_iterable(self._values.elements(array)) if array in self._appended else ()
        if any(one.rpartition("/")[2] in _READING for one in every):
            self._find("")

    def _texts_for_shell(self, words: CommandWords) -> list[str]:
        """List what a wrapper hands to a shell: the words from the option that says so."""
        return [_TEXT_OPTION.sub("", text, count=1).replace("\\_", " ") for text in words.joined()]

    def _take(self, call: Call, at: int, takes_text: bool) -> None:  # noqa: FBT001 - as `unwrapped` says it
        """Take note of what the words before *at* take from the program there, or from a text."""
        started, taking = call.words.behind(at), call.words.up_to(at).every()
        if not started.places:
            self._take_from_shell(taking)
            return
        texts: list[str] = []
        if takes_text:
            texts = self._texts_for_shell(started)
            is_split = any(one.rpartition("/")[2] == "env" for one in taking)
            taking = self._before_program(taking, texts) if is_split else [*taking, *started.every()]
        if may_take(taking) and not self._starts_tools(started, texts):
            self._takes(taking)
            for way in call.words.up_to(at).groups()[1:]:  # in which a name may stand behind its option
                self._takes(way)

    def _before_program(self, before: list[str], texts: Sequence[str]) -> list[str]:
        """Return *before*, and the words of *texts* that `env -S` splits, up to the program in them."""
        words = [*before, *self._split(texts, _FIRST_WORDS)]
        at, is_split_again = unwrapped(words)
        if at == len(words):
            words = [*before, *self._split(texts, _MORE_THAN_COUNTED)]
            self._of_container.work(len(words) // _WORDS_OF_STEP)
            at, is_split_again = unwrapped(words)
        if is_split_again or has_odd_option(words[:at]):
            self._find("")
        return words[:at]

    def _split(self, texts: Sequence[str], most: int) -> Iterator[str]:
        """Yield the words of *texts*, at *most* so many, each as what of it takes most."""
        work = self._of_container.work
        for one in islice(chain.from_iterable(split_by_env(text, most, work) for text in texts), most):
            if "${" in one:
                ways = ways_of_word(one, self._values.of, work)
                yield next(chain(filter(_OPTION.match, ways), filter(is_taking_program, ways), ways))
            else:
                yield one

    def _takes(self, words: Sequence[str]) -> None:
        """Take note of words that may take variables from a framework."""
        self._of_container.work(_STEPS_OF_TAKING)
        self.taking[tuple(words)] = None

    def _take_behind(self, call: Call) -> None:
        """Take note of what a word of an unknown program takes, which may start the words behind it: `x sudo y`."""
        line = call.words.line
        at = next((at for at, word in enumerate(line) if at and is_taking_program(word)), 0)
        if not at or not _INSTALLING.isdisjoint(line[:at]):
            return
        if is_harmless(line) or is_python(line[0].rpartition("/")[2]):
            return
        started = call.behind(at)
        self._take(started, *started.words.unwrapped)

    def _take_from_shell(self, taking: list[str]) -> None:
        """Take note of what is taken from a shell that no word names, and so from what its input starts."""
        is_of_tools = bool(self._bodies) and all(map(self._runs_tools, self._bodies))
        if starts_shell(taking) and not is_of_tools:
            self._takes(taking)

    def _look_at_unread(self, plain: str) -> None:
        """Take note of what a text that is not read takes from programs or gives them, and what it replaces."""
        for words in commands_in(plain, self._of_container.work):
            taking, gives = taken_in(words)
            if taking:
                self._takes(taking)
            if gives:
                self._find("")
        named = self._index.variables_in(plain)
        self._of_container.check_settings(sum(map(len, named.values())))  # each would be looked at to the value's end
        for name, value in set_in_unread(plain, named, self._index.lists):
            self._set_list(name, value)
        every = ((at, at + len(name)) for name, places in named.items() for at in places)
        if any(is_set_otherwise(plain, *one) for one in every):
            self._find("")

    def _take_in_texts(self, words: Sequence[str]) -> None:
        """Read the texts that an unknown program may hand to a shell, if they take variables."""
        if is_python(words[0].rpartition("/")[2]):
            return
        for before, one in pairwise(words):
            if _BEFORE_TEXT.fullmatch(before) and names_taking(one):
                self._run(one, is_text=False)

    def _starts_tools(self, started: CommandWords, texts: Sequence[str]) -> bool:
        """Whether a command starts nothing but tools and services, itself or by the *texts* for a shell."""
        line = started.line
        if not texts and line[0].rpartition("/")[2] in SHELLS:
            at, has_text = behind_options(line[1:])
            ways = started.places[at + 1 : at + 2] if has_text else []
            texts = [" ".join(way) for some in ways for way in some]
        if not texts:
            return is_harmless(line) or self._is_tool(started)
        return all(map(self._runs_tools, texts))

    def _runs_tools(self, text: str) -> bool:
        """Whether a text starts nothing but tools and services, by words that are written out."""
        self._of_container.work(len(text) // CHARACTERS_OF_STEP)
        if text not in self._of_tools:
            script = self._script_of(text, Reading())
            self._of_container.work(_STEPS_OF_COMMAND * len(script.commands) if script else 0)
            self._of_tools[text] = _is_of_tools(script)
        return self._of_tools[text]


def _is_of_tools(script: Script | None) -> bool:
    return script is not None and not script.functions and all(map(_is_command_of_tools, script.commands))


def _is_command_of_tools(command: Command) -> bool:
    if command.reads or not all(map(_computes_nothing, _beside(command))):
        return False
    line = ["".join([part.text for part in word if isinstance(part, Literal)]) for word in command.words]
    at, takes_text = unwrapped(line)
    is_written = all(isinstance(part, Literal) for word in command.words for part in word)
    return not line or (is_written and not takes_text and at < len(line) and is_harmless(line[at:]))


def _beside(command: Command) -> Iterator[Word]:
    yield from command.beside
    yield from (one.value for one in command.sets)
    yield from chain.from_iterable(one.words for one in command.arrays)


def _computes_nothing(word: Word) -> bool:
    return all(isinstance(one, Literal) or (isinstance(one, Reference) and not one.operator) for one in word)
