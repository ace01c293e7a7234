"""Where a shell's text is being read: in which compound commands, and behind which operator."""

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from policies.frameworks.expansion import ANYTHING, UnreadableError
from policies.frameworks.shell.script import Word

OPENING = frozenset({"if", "while", "until", "for", "select", "{"})
CLOSING = frozenset({"fi", "done", "}"})
_CONDITIONAL = frozenset({"&&", "||", "|", "|&"})  # before a command that may not be run, or not in this shell
_PIPES = frozenset({"|", "|&"})
_ASIDE = frozenset({"&", "|", "|&"})  # behind a command in a shell of its own
# An expansion that may fail; bash then skips the rest of the line, with what it sets, and goes on with the next one.
MAY_FAIL = re.compile(r"\$\(\(|\$\{(?!\w+(?:\[[@*0-9]\])?(?::?[-=+?]|\}))")
# Behind && and || in [[ ]], which dash takes for commands: `-n x`, `x == y`, `! -f x`.
_TEST = re.compile(
    r"\s*(?:!\s+)?(?:-[a-zA-Z]\s+\S+|\S+\s+(?:==?|!=|=~|-(?:eq|ne|l[te]|g[te]|[no]t|ef))\s.*)\s*", re.DOTALL
)
_QUOTES = re.compile(r"""(?:[^'"\\]++|'[^']*+'|"(?:[^"\\]|\\.)*+"|\\.)*+""", re.DOTALL)
# What dash makes of it: commands up to the first parenthesis, where it finds an error and runs no more.
_PART = re.compile(r"""((?:[^'"\\&|;\n(]|'[^']*+'|"(?:[^"\\]|\\.)*+"|\\.)++)|[&|;\n]+|\(.*""", re.DOTALL)
# As it is nearly always written. More of quotes, or something behind them at once, would be read in other ways.
_DELIMITER = re.compile(
    r"""[ \t]*(?:'([^'\n]*)'|"([^"\\$`\n]*)"|\\([\w.-]+)|([\w.-]+))(?=$|[ \t\n;&|()<>])""", re.ASCII
)
_MOST_PARTS = 64  # of one test, and what is between them


class HereDocument(NamedTuple):
    """What a command reads from the lines that follow."""

    delimiter: str
    is_quoted: bool
    strips_tabs: bool
    command: list[Word]

    def ends_at(self, line: str) -> bool:
        """Whether *line* is the one that ends it."""
        return (line.lstrip("\t") if self.strips_tabs else line) == self.delimiter


def here_document(text: str, at: int, operator: str, command: list[Word]) -> tuple[HereDocument, int]:
    """
    Read the delimiter of a here-document at *at*; returns where it ends, too.

    Raises:
        UnreadableError: If it is written in another way than most.
    """
    match = _DELIMITER.match(text, at)
    if match is None:
        raise UnreadableError
    *quoted, bare = match.groups()
    delimiter = next(one for one in (*quoted, bare) if one is not None)
    return HereDocument(delimiter, bare is None, operator == "<<-", command), match.end()


@dataclass(slots=True)
class Commands:
    """The commands of one text or substitution, as far as they have been read."""

    open: list[str] = field(default_factory=list)  # "(" and "case" that are not closed
    nest: int = 0  # other compound commands that are not closed
    before: str = ""  # the operator before the command
    command: list[Word] = field(default_factory=list)
    begun: bool = False  # whether a word of the command has been read
    sets: bool = False  # whether it sets variables, for itself or for the text
    redirects: bool = False
    reads: bool = False  # from a file
    splits: bool = False  # in dash, which ends a command at the first sign of &>
    differs: bool = False  # in what it sets: others than bash take its first word for a program
    written: str = ""  # what they write, or the last one in a pipe

    def next(self, operator: str) -> None:
        """Go on behind *operator*; the end of a line behind && or | means nothing."""
        if operator != "\n" or self.command or self.sets or self.redirects:
            self.before = operator
        self.command, self.begun, self.sets, self.redirects = [], False, False, False
        self.reads = self.splits = self.differs = False

    def writes(self, written: str, operator: str) -> None:
        """Take note of what the command writes before *operator*, if it goes where all of them write."""
        if written and (operator not in _PIPES or self.redirects):
            self.written = written if self.written in ("", written) else ANYTHING

    def is_certain(self, operator: str) -> bool:
        """Whether the command is run in this shell, whatever else is, and its variables stay when it ends."""
        is_alone = self.before not in _CONDITIONAL and operator not in _ASIDE and not self.nest and not self.open
        return is_alone and not self.redirects and not self.differs and not (self.sets and self.command)


def commands_of_dash(test: str) -> list[str]:
    """
    List what of the inside of [[ ]] a shell runs that has no such test.

    Raises:
        UnreadableError: If it ends in the middle of a quoted text, or has more parts than any real one.
    """
    if not _QUOTES.fullmatch(test):
        raise UnreadableError
    parts = list(islice(_PART.finditer(test), _MOST_PARTS + 1))
    if len(parts) > _MOST_PARTS:
        raise UnreadableError
    return [one[1] for one in parts[1:] if one[1] and not _TEST.fullmatch(one[1])]
