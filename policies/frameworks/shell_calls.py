"""What the words of a command go on to: texts for shells, functions, and whatever may take an option."""

import re
from collections.abc import Iterable
from itertools import chain
from typing import Final

from policies.frameworks.command_line import POSIX_SHELLS, SHELLS
from policies.frameworks.expansion import A_NAME, A_NUMBER, A_VALUE, ANYTHING, KINDS, TOLD, UNREAD
from policies.frameworks.shell.builtins import is_name
from policies.frameworks.shell.command_words import Call, CommandWords
from policies.frameworks.shell.options import behind_options, is_input
from policies.frameworks.shell.patterns import DASHED
from policies.frameworks.shell.reading import Reading
from policies.frameworks.shell.rest import REST
from policies.frameworks.shell.script import EVERYWHERE, POSITIONAL, ZERO
from policies.frameworks.shell.signs import computes, has_positional
from policies.frameworks.shell.tools import is_python
from policies.frameworks.shell_tools import ShellTools

_STEPS_OF_SHELL: Final = 24  # that a command starts
_MOST_SHELLS: Final = 4  # that one command may start, by its words
_PART_UNREAD = re.compile(rf"-(?:(?>[\w-]|{A_NUMBER}))*+")
_KNOWN_MARKS = re.compile(f"(?:(?>{A_VALUE}|{A_NAME}|{A_NUMBER}|{TOLD}|{REST} ?))++")
_COMPUTED_NAME = re.compile(rf"(?=[^=]*{UNREAD})(?:[A-Za-z_]|{UNREAD})[\w{UNREAD}{KINDS}]*+=(?!/)", re.ASCII)
_SPACE = re.compile(r"\s")


class ShellCalls(ShellTools):
    """Looks at what a command hands on."""

    def _begin(self) -> None:
        """Take note of what is known before any command is looked at, so that it need not be looked at again."""
        if self._is_new and self._depth == self._runs == 1:
            self._known = self._of_commands()
        self._is_new = False

    def _of_commands(self) -> tuple[int, ...]:
        """Count what says what a command does: functions, what undoes them, and that it may read what others write."""
        names = self._functions, self._open_functions, self._loose_functions
        return (*map(len, names), self._is_fed, self._undefines)

    @property
    def _is_fed_here(self) -> bool:
        """Whether the command that is looked at may read what others write: a download is nobody's here."""
        return self._is_fed and not self._downloads

    def _context_of(self, text: str) -> str:
        """Return whose words $1 is one of in *text*; no function has such a name."""
        return f"{POSITIONAL}#{self._contexts.setdefault(text, len(self._contexts))}"

    def _run_words(self, call: Call) -> None:
        """Read what `eval` or `trap` is given."""
        words = call.words.behind(1)
        if call.words.line[0] == "trap":
            for text in dict.fromkeys(words.any_first()):
                self._run_here(text, EVERYWHERE, is_bash=self._is_bash)
            return
        if call.may_begin_later and any(len(text) > 1 for ways in words.places for text in (*ways, words.places)):
            self._values.lose()  # the first of them may be gone
        for text in words.joined():
            self._run_here(text.removeprefix("-- "), is_bash=self._is_bash)

    def _without_text(self, words: CommandWords) -> CommandWords:
        """Leave out a text that a shell reads, of which it is said apart what is in it."""
        at, takes_text = words.unwrapped
        if takes_text or at >= len(words.line) or (name := words.line[at].rpartition("/")[2]) not in POSIX_SHELLS:
            return words
        end, has_text = behind_options(words.line[at + 1 :])
        place = at + 1 + end
        if not has_text or place >= len(words.places):
            return words
        how = Reading(is_bash=name == "bash")
        is_read = all(self._script_of(one, how) is not None for one in _texts_at(words, place))
        return CommandWords([*words.places[:place], *words.places[place + 1 :]]) if is_read else words

    def _start_shell(self, call: Call, *, is_text: bool = True, is_inside: bool = False) -> bool:
        """
        Look at a shell that a command starts; returns whether it runs a text or its input, and no script.

        *is_inside*: by its words, which are looked at anyway.
        """
        self._of_container.work(_STEPS_OF_SHELL)
        words = call.words
        at, has_text = behind_options(words.line[1:])
        at += 1
        if at >= len(words.places):  # what an option at the end asks for is not there
            self._reads_input |= self._is_fed_here and not self._bodies
            return True
        if not has_text:
            reads = any(one.startswith("-") and "s" in one for one in words.line[1:at])
            may_read = (reads and not self._downloads) or (UNREAD in words.line[at] and self._is_fed_here)
            self._reads_input |= is_input(words.line[at]) or (may_read and not self._bodies)
            return False
        passed = words.behind(at + 1)
        zeros = passed.every() if self._values.shifts else passed.first_at(0)
        for one in zeros:
            self._values.assign(ZERO, one)
        is_certain = len(zeros) == 1 and len(passed.places[0]) == 1
        passed = passed.behind(1) if is_certain else passed
        if passed.places and not is_certain:
            self._values.shift()
        name = words.line[0].rpartition("/")[2]
        for text in _texts_at(words, at):
            context = self._context_of(text)
            for group in self._ways_of(passed):
                self._values.give(context, group)
            how = Reading(reads=name in POSIX_SHELLS, is_bash=name == "bash")
            self._run(text, is_text=is_text, how=how, context=context)
        if not is_inside:
            for one in dict.fromkeys(chain(words.behind(at + 1).every(), *[way[1:] for way in words.places[at]])):
                self._may_be_option(one, is_unknown=False)
        return True

    def _start_shell_inside(self, call: Call) -> bool:
        """Look at a shell that an unknown program may start, by its words; returns whether there is one with a text."""
        line = call.words.line
        starts, is_fed = False, self._is_fed_here
        shells = [at for at, word in enumerate(line[1:], start=1) if word.rpartition("/")[2] in SHELLS]
        if len(shells) > _MOST_SHELLS:
            self._find("")
        for at in shells[:_MOST_SHELLS]:
            end, has_text = behind_options(line[at + 1 :])
            self._reads_input |= is_fed and at + 1 + end >= len(line)
            if has_text and at + 1 + end < len(line):
                starts |= self._start_shell(call.behind(at), is_text=self._runs > 0, is_inside=True)
        return starts

    def _give_text(self, call: Call) -> None:
        """Take note of the words that any text or function may be given, one of them as $0."""
        is_own = self._values.context == EVERYWHERE
        words = (call.passed if is_own else call.words).every()[1:]
        self._values.give(EVERYWHERE, words)
        for one in words:
            self._values.assign(ZERO, one)

    def _may_be_built_in(self, words: list[str]) -> None:
        """Look at what a program is given that may be `eval`, or another one that sets variables."""
        if any(map(self._changes, words)):
            self._values.lose()
        for one in words:
            if _SPACE.search(one) or ";" in one:
                self._run_here(one, EVERYWHERE, is_bash=False)

    def _may_undefine(self, words: list[str]) -> bool:
        """Whether a command may take a function back, itself or by a file or a text of its words."""
        if words[:1] == ["unset"]:
            return not all(is_name(one) and one not in self._functions for one in words[1:])
        return "." in words or "source" in words or "unset" in " ".join(words)

    def _calls_own(self, call: Call) -> bool:
        """Whether a command calls a function that is read, so that its words matter only there."""
        is_run = self._depth == self._runs  # as a whole, and by one shell
        return call.is_own and is_run and not self._undefines and "alias" not in self._functions

    def _call_function(self, name: str, call: Call) -> None:
        """Take note of the words that a function is given."""
        context = EVERYWHERE if name in self._open_functions else f"{POSITIONAL}{name}"
        is_own = context == self._values.context
        for group in self._ways_of((call.passed if is_own else call.words).behind(1)):
            self._values.give(context, group)
        self._tell_first(call.words.behind(1))

    def _ways_of(self, words: CommandWords) -> list[list[str]]:
        """List words that are given in each way; where the ways are many, all of them together."""
        groups = words.groups()
        if not groups:
            self._values.mix()
        return groups or [words.every()]

    def _tell_first(self, given: CommandWords) -> None:
        """Take note of words that are given of which any of several is the first."""
        if len(given.first_at(0)) > 1:
            self._values.shift()

    def _called_by(self, call: Call) -> set[str]:
        """Return the functions that a command may call by a word of its own, as `compgen -F` does."""
        program = call.words.line[0]
        is_known = program in self._index.framework_names or is_python(program)
        is_certain = is_known and not call.may_begin_later and program not in self._functions
        calls_none = self._calls_own(call) or is_certain
        return self._loose_functions if calls_none else self._functions

    def _read(self, line: list[str], body: str, *, is_computed: bool) -> None:
        """Look at what a command reads: a tool as data, a shell as a text, and others as they like."""
        program = line[0] if line else ""
        self._say(body, is_certain=not self._tool(program))
        self._fed[body] = None
        self._has_unread |= UNREAD in body
        if self._tool(program):
            self._keep(body)
        elif program.rpartition("/")[2] in (*SHELLS, ".", "source"):
            if is_computed and UNREAD in body:
                self._find("")
            context = self._context_of(body)
            self._values.give(context, line[1:])
            self._values.mix()  # options stand among them
            is_bash = program == "bash" or (self._is_bash and program in (".", "source"))
            self._run_here(body, context, is_bash=is_bash)
        elif ANYTHING in body:
            self._find("")
        elif UNREAD in program:
            self._run_here(body, EVERYWHERE, is_bash=False)
        elif computes(body):
            if has_positional(body):
                self._values.give(EVERYWHERE, line[1:])
            self._may_run(body)

    def _may_be_option(self, word: str, *, is_unknown: bool) -> None:
        if UNREAD not in word and "$" not in word and "`" not in word and "{" not in word:  # as in most
            return
        marks = _KNOWN_MARKS.match(word)
        text = word[marks.end() :] if marks else word
        is_begun = marks is not None and A_NAME in marks[0]
        if (text.startswith((ANYTHING, DASHED)) and not is_begun) or _COMPUTED_NAME.match(word):
            self._find("")
        elif (start := self._start_of_option(text)) and not is_begun:
            self._find(start)
        elif (_SPACE.search(text) or is_unknown) and (computes(text) or ANYTHING in text or "{" in text):
            self._may_run(text)

    def _start_of_option(self, text: str) -> str:
        """Return how an option begins whose name goes on unread, or may have a number in it; "" if it does neither."""
        match = _PART_UNREAD.match(text)
        if match is None:
            return ""
        name = ""
        *numbered, last = match[0].split(A_NUMBER)
        for part in numbered:
            name += part  # what failed before it has written nothing
            if not name.strip("-") or self._index.has_number_behind(name):
                return name
            if not self._index.may_become_one(name):  # nor what is longer
                return ""
        name += last
        goes_on = text.startswith(UNREAD, match.end())
        return name if goes_on or (numbered and self._index.of_option(name)) else ""


def _texts_at(words: CommandWords, place: int) -> Iterable[str]:
    """List what a shell may get as its text from *place*: the first of several words, or one with blanks."""
    return dict.fromkeys(one for way in words.places[place] for one in ("".join(way[:1]), " ".join(way)))
