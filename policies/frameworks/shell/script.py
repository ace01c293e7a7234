"""What a shell's text consists of, in whatever order it is run, and whether it is: commands and their words."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

ALL: str = "["  # behind a name: all elements of an array
POSITIONAL: str = "@"  # the name of the words that a text, a function or `set` is given
EVERYWHERE: str = "@*"  # for words that anything may be given
ZERO: str = "0"  # the name of the one before them
JOINING = frozenset({"&&", "||", "|", "|&"})  # two commands: the second may stand in a later line, and may not be run


class Literal(msgspec.Struct, frozen=True, gc=False):
    """What stands there itself."""

    text: str
    is_quoted: bool = True


class Reference(msgspec.Struct, frozen=True, gc=False):
    """`$NAME`, or `${NAME:-operand}`."""

    name: str
    is_quoted: bool
    operator: str = ""  # -, :-, +, :+, =, :=, ?, :?; % for every other, which takes a part
    operand: tuple[Part, ...] = ()
    is_all: bool = False  # "${NAME[@]}": as many words as there are
    place: int = 0  # of $1 and the like, from 1


class Output(msgspec.Struct, frozen=True, gc=False):
    """`$(command)`: what the commands write."""

    script: Script
    is_quoted: bool


class Number(msgspec.Struct, frozen=True, gc=False):
    """`$((expression))`."""

    is_quoted: bool = True


Part = Literal | Reference | Output | Number
Word = tuple[Part, ...]


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """`NAME=value`, or `for NAME in value`."""

    name: str
    value: Word
    appends: bool = False
    is_each: bool = False  # every word that the value becomes


class Elements(msgspec.Struct, frozen=True, gc=False):
    """`NAME=(words)`, or one of them in `NAME[0]=word`."""

    name: str
    words: list[Word]
    is_all: bool  # of the array
    has_index: bool = False  # so that it may stand in another's place


class Here(msgspec.Struct, frozen=True, gc=False):
    """What a command reads: a here-document, or a word behind `<<<`."""

    body: Word
    is_quoted: bool  # nothing in it is expanded


class Command(msgspec.Struct):
    """A simple command, or assignments without one."""

    words: list[Word] = []
    sets: list[Assignment] = []
    arrays: list[Elements] = []
    reads: list[Here] = []
    beside: list[Word] = []  # words that it does not get: paths, patterns, tests
    passes: bool = False  # words that its text or function is given
    within: str = ""  # the function in whose body it stands
    redirects: bool = False
    duplicates: bool = False  # where it writes, as in `2>&1`
    writes_out: bool = True  # and not into a file
    tells_errors: bool = False  # where it writes, or may, as by `2>&1` and not by `>/dev/null 2>&1`
    is_test: bool = False  # [[ ]], in which dash runs what stands behind || and the like
    reads_file: bool = False
    calculates: bool = False  # arithmetic, or an index
    is_piped: bool = False  # what it writes is read by the next one
    reads_pipe: bool = False  # what the one before it writes
    reads_else: bool = False  # a file, say, instead of a pipe
    downloader: str = ""  # the program that writes the pipe, if that writes a download alone
    feeds: bool = False  # what it writes may be read by another one
    is_call: bool = False  # of a function that the text has defined by then
    is_certain: bool = False  # nothing stands before that could keep its variables from being set

    @property
    def program(self) -> str:
        """Its program, where that is written out in one piece; else nothing."""
        word = self.words[0] if self.words else ()
        return word[0].text if len(word) == 1 and isinstance(word[0], Literal) else ""

    @property
    def is_written(self) -> bool:
        """Whether its program is written out."""
        return not self.words or all(isinstance(part, Literal) for part in self.words[0])

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands there."""
        if self.words or self.sets or self.arrays or self.reads or self.beside:
            return False
        return not (self.redirects or self.calculates or self.passes)


@dataclass(slots=True, eq=False)  # each is another one, whatever stands in it
class Script:
    """One text."""

    commands: list[Command] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    pipes: bool = False  # more than one command reads what another one writes
    open_functions: set[str] = field(default_factory=set)  # those of them whose body is not in braces
