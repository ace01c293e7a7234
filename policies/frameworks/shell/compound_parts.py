"""Parts of a shell's text with rules of their own: what ends a here-document, and what dash makes of `[[ ]]`."""

import re
from itertools import islice
from typing import NamedTuple

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.shell.script import Command

# Behind && and || in [[ ]], which dash takes for commands: `-n x`, `x == y`, `! -f x`.
_TEST = re.compile(
    r"\s*(?:!\s+)?(?:-[a-zA-Z]\s+\S+|[$\"'0-9-]\S*\s+(?:==?|!=|=~|-(?:eq|ne|l[te]|g[te]|[no]t|ef))\s.*)\s*", re.DOTALL
)
_QUOTES = re.compile(r"""(?:(?>[^'"\\]++|'[^']*+'|"(?:(?>[^"\\]|\\.))*+"|\\.))*+""", re.DOTALL)
# What dash makes of it: commands up to the first parenthesis, where it finds an error and runs no more.
_PART = re.compile(r"""((?:(?>[^'"\\&|;\n(]|'[^']*+'|"(?:(?>[^"\\]|\\.))*+"|\\.))++)|[&|;\n]+|\(.*""", re.DOTALL)
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
    command: Command

    def ends_at(self, line: str) -> bool:
        """Whether *line* is the one that ends it."""
        return (line.lstrip("\t") if self.strips_tabs else line) == self.delimiter


def here_document(text: str, at: int, operator: str, command: Command) -> tuple[HereDocument, int]:
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
