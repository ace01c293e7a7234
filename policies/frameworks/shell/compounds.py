"""The compound commands of a shell's text: loops, branches, tests and functions, by their reserved words."""

import re
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_VALUE, ANYTHING
from policies.frameworks.shell.certainty import Certainty
from policies.frameworks.shell.compound_parts import commands_of_dash
from policies.frameworks.shell.definitions import Definitions
from policies.frameworks.shell.reading import Counts
from policies.frameworks.shell.script import POSITIONAL, Assignment, Command, Literal, Reference, Script, Word
from policies.frameworks.shell.words import BARE, WordReader

_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")  # of which only the value matters to what dash takes for commands
_BLANK = r"(?>(?:\\\n)*[ \t])++(?:\\\n)*+"
_JOINED_OPTION = re.compile(r"-[p-]?\\\n")
_OPTIONS_OF_TIME = re.compile(rf"{_BLANK}(?:-p{_BLANK})?(?:--{_BLANK})?")
_END_OF_FUNCTION = re.compile(r"[ \t\n({]")
_COUNTED = re.compile(r"\{[0-9]{1,4}\.\.[0-9]{1,4}\}(?=[ \t;\n])")
_JOINED = re.compile(r"\S(?:\\\n)+\S")  # which bash and dash, to which it is no test, may read apart
_END_OF_TEST = re.compile(r"(?<=\s)\]\](?=$|[\s;&|()<>])")
_TOKENS_OF_LOOP: Final = 4  # beside those of its name and values
_SKIPPED: Final = frozenset({"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!"})
_OPENING: Final = frozenset({"if", "while", "until", "for", "select"})
_CLOSING: Final = frozenset({"fi", "done"})
_COMPOUND: Final = frozenset({"for", "select", "case", "esac", "function", "[[", "coproc", "time"})


class CompoundReader(WordReader):
    """Reads the compound commands of one text."""

    def __init__(self, text: str, count: Counts, depth: int = 0, *, is_bash: bool = False) -> None:
        """Read *text*, in which *count* counts the tokens."""
        super().__init__(text, count, depth, is_bash=is_bash)
        self._open: list[str] = []  # "(" and "case" that are not closed
        self._braces: list[str] = []  # that are not closed: the function in whose body they stand, or ""
        self._defined = ""  # the function whose body begins here
        self._begun = False  # the command has words, or is a test
        self._nest = 0  # loops and branches that are not closed
        self._certainty = Certainty(is_outermost=depth == 0)
        self._definitions = Definitions(is_outermost=depth == 0)

    def _expanded(self, text: str) -> Word:
        """Read a text in which quotes mean nothing, and words are not told apart."""
        raise NotImplementedError

    def _reserved(self) -> bool:
        """Read a reserved word, if there is one, and what belongs to it."""
        is_begun = self._begun or self._command.sets or self._command.redirects
        match = None if is_begun else BARE.match(self._text, self._at)
        word = match[0] if match else ""
        if word not in _SKIPPED and word not in _COMPOUND:
            return False
        self._at += len(word)
        self._nest += (word in _OPENING) - (word in _CLOSING)
        if word in _COMPOUND:
            self._compound(word)
        elif word == "{":
            if self._defined not in self._script.open_functions:
                self._definitions.begin(self._defined, self._nested_in())
            self._braces.append(self._defined or self._stands_in())
            self._defined = ""
        elif word == "}":
            if not self._braces:
                raise UnreadableError
            self._braces.pop()
            self._definitions.end(self._nested_in())
        return True

    def _nested_in(self) -> int:
        """Return in how many compound commands the next one stands."""
        return self._nest + len(self._open) + len(self._braces)

    def _defines(self, name: str) -> None:
        self._script.functions.add(name)
        self._defined = name

    def _has_no_braces(self) -> None:
        """Take note of a function whose body ends nobody knows where."""
        if self._defined:
            self._script.open_functions.add(self._defined)
            self._certainty.give_up()
            self._defined = ""

    def _stands_in(self) -> str:
        return self._braces[-1] if self._braces else ""

    def _absorb(self, script: Script) -> None:
        """Take over commands that are run beside this one."""
        for one in script.commands:
            one.within = one.within or self._stands_in()
            self._script.commands.append(one)
        self._script.pipes |= script.pipes
        self._script.functions |= script.functions
        self._script.open_functions |= script.open_functions

    def _compound(self, word: str) -> None:
        match word:
            case "for" | "select":
                self._loop(word)
            case "case":
                self._case()
            case "esac":
                self._close("case")
            case "function":
                self._function()
            case "[[":
                self._test()
            case "time":  # dash takes it for a program
                self._certainty.doubt()
                self._definitions.time()
                if match := _OPTIONS_OF_TIME.match(self._text, self._at):
                    self._at = match.end()
                if _JOINED_OPTION.match(self._text, self._at):
                    raise UnreadableError
            case _:
                raise UnreadableError

    def _function(self) -> None:
        """Read the name of a function that bash knows, and that dash takes for words: its body is run at once."""
        name = self._name()
        if not _END_OF_FUNCTION.match(self._text, self._at):
            raise UnreadableError
        self._defines(name)
        self._script.open_functions.add(name)
        self._blank()
        if self._text.startswith("()", self._at):
            self._at += 2

    def _close(self, opened: str) -> None:
        if not self._open or self._open.pop() != opened:
            raise UnreadableError

    def _test(self) -> None:
        end = _END_OF_TEST.search(self._text, self._at)
        if end is None or _JOINED.search(self._text, self._at, end.start()):
            raise UnreadableError
        parts = self._expanded(self._text[self._at : end.start()])
        self._command.beside.append(parts)
        self._command.is_test = True
        for one in commands_of_dash(_SUBSTITUTION.sub("$_", self._text[self._at : end.start()])):
            self._absorb(self._nested(one))
        self._set_numbers(self._text[self._at : end.start()])
        self._at = end.end()
        self._begun = True

    def _calculate(self) -> None:
        """Read `((expression))`, which dash takes for commands."""
        begin = self._at + 2
        if not self._calculates("(("):
            raise UnreadableError
        self._certainty.doubt()
        self._begun = True
        nested = self._nested(self._text[begin : self._at - 2])
        for one in nested.commands:  # dash, which would run them, has no `i+=1`
            one.sets = [some for some in one.sets if not some.appends]
        self._absorb(nested)

    def _loop(self, word: str) -> None:
        self._count(_TOKENS_OF_LOOP)
        self._blank()
        if self._text.startswith("((", self._at) and self._calculates("((", is_loop=True):  # bash alone counts so
            return
        name = self._name()
        values: list[Word] = [(Reference(POSITIONAL, is_quoted=True, is_all=True),)]
        if self._takes("in"):
            values = []
            self._blank()
            while self._at < len(self._text) and self._text[self._at] not in ";\n#":
                values.append(self._counted() or self._word())
                self._blank()
        if word == "select":
            values.append((Literal(ANYTHING),))
        sets = [Assignment(name, one, is_each=True) for one in values]
        self._script.commands.append(Command(sets=sets, within=self._stands_in()))

    def _counted(self) -> Word:
        """Read `{0..3}`, which is those numbers or itself; the elements of a loop are set one by one."""
        match = _COUNTED.match(self._text, self._at)
        if match is None:
            return ()
        self._at = match.end()
        return (Literal(A_VALUE),)

    def _case(self) -> None:
        self._blank()
        self._command.beside.append(self._word())
        self._open.append("case")
        if not self._takes("in"):
            raise UnreadableError
        self._patterns()

    def _patterns(self) -> None:
        """Read the patterns of one branch of `case`, or `esac`."""
        if not self._open or self._open[-1] != "case":
            raise UnreadableError
        if self._takes("esac"):
            self._close("case")
            return
        if self._text.startswith("(", self._at):
            self._at += 1
        sign = "|"
        while sign == "|":
            self._blank()
            if self._text[self._at : self._at + 1] not in ("|", ")"):
                self._command.beside.append(self._word())
            self._blank()
            sign = self._text[self._at : self._at + 1]
            self._at += 1
        if sign != ")":
            raise UnreadableError
