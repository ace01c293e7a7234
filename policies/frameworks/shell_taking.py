"""What commands take of the container's variables from what they start, as far as that may be a framework."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

from policies.frameworks.command_line import SHELLS, unwrapped
from policies.frameworks.shell.command_words import Call, CommandWords
from policies.frameworks.shell.options import behind_options
from policies.frameworks.shell.reading import Reading
from policies.frameworks.shell.script import Command, Literal, Reference, Script, Word
from policies.frameworks.shell.tools import is_python, runs_another, tool
from policies.frameworks.shell_calls import ShellCalls
from policies.frameworks.taken_variables import TAKING, is_service, may_take

_STEPS_OF_TAKING: Final = 60  # variables from a program
_TEXT_OPTION = re.compile(r"--[\w-]+[= ]?|-\w ?")
_BEFORE_TEXT = re.compile(r"-[a-z]*c|--command")  # of `script`, `flock` and others


class ShellTaking(ShellCalls):
    """Takes note of what starts a program without variables."""

    def _texts_for_shell(self, words: CommandWords) -> list[str]:
        """List what a wrapper hands to a shell: the words from the option that says so."""
        return [_TEXT_OPTION.sub("", text, count=1).replace("\\_", " ") for text in words.joined()]

    def _take(self, call: Call, at: int, *, takes_text: bool) -> None:
        """Take note of what the words before *at* take from the program there, or from a text."""
        started = call.words.behind(at)
        if not started.places:
            return
        taking = call.words.up_to(at).every()
        texts: list[str] = []
        if takes_text:
            texts = self._texts_for_shell(started)
            is_split = any(one.rpartition("/")[2] == "env" for one in taking)
            taking = [*taking, *(chain.from_iterable(map(str.split, texts)) if is_split else started.every())]
        if may_take(taking) and not self._starts_tools(started, texts):
            self._of_container.work(_STEPS_OF_TAKING)
            self.taking[tuple(taking)] = None

    def _take_in_texts(self, words: Sequence[str]) -> None:
        """Read the texts that an unknown program may hand to a shell, if they take variables."""
        if is_python(words[0].rpartition("/")[2]):
            return
        for before, one in pairwise(words):
            if _BEFORE_TEXT.fullmatch(before) and any(name in one for name in TAKING):
                self._run(one, is_text=False)

    def _starts_tools(self, started: CommandWords, texts: Sequence[str]) -> bool:
        """Whether a command starts nothing but tools and services, itself or by the *texts* for a shell."""
        line = started.line
        if not texts and line[0].rpartition("/")[2] in SHELLS:
            at, has_text = behind_options(line[1:])
            ways = started.places[at + 1 : at + 2] if has_text else []
            texts = [" ".join(way) for some in ways for way in some]
        if not texts:
            return _is_harmless(line) or self._is_tool(started)
        return all(_is_of_tools(self._script_of(one, Reading())) for one in texts)


def _is_of_tools(script: Script | None) -> bool:
    """Whether a text starts nothing but tools and services, by words that are written out."""
    return script is not None and not script.functions and all(map(_is_command_of_tools, script.commands))


def _is_command_of_tools(command: Command) -> bool:
    if command.reads or not all(map(_computes_nothing, _beside(command))):
        return False
    line = ["".join([part.text for part in word if isinstance(part, Literal)]) for word in command.words]
    at, takes_text = unwrapped(line)
    is_written = all(isinstance(part, Literal) for word in command.words for part in word)
    return not line or (is_written and not takes_text and at < len(line) and _is_harmless(line[at:]))


def _beside(command: Command) -> Iterator[Word]:
    yield from command.beside
    yield from (one.value for one in command.sets)
    yield from chain.from_iterable(one.words for one in command.arrays)


def _computes_nothing(word: Word) -> bool:
    return all(isinstance(one, Literal) or (isinstance(one, Reference) and not one.operator) for one in word)


def _is_harmless(line: Sequence[str]) -> bool:
    """Whether a command line whose words stand for certain is that of a tool or a service."""
    words = [line[0].rpartition("/")[2], *line[1:]]
    return is_service(words) or (bool(tool(words[0])) and not runs_another(words))
