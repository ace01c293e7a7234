"""What passes between the reader of a shell's text and whoever it reads for: words, values, and marks in them."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

DASHED: Final = "\0\6"  # a part of a value that is one word, so that it is one too, and may begin with a dash
GIVEN: Final = "\0\4"  # a word that stands elsewhere in the text or on the command line: $1, or a variable set twice
SEVERAL: Final = f"{GIVEN} {GIVEN}"  # such words
SPLIT: Final = "\0\5"  # where a value is split into words
WHITE_SPACE: Final = re.compile(r"[ \t\n]+")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SETS_NUMBERS = re.compile(r"(?<![=!<>])=(?!=)|<<=|>>=|\+\+|--")


class Word(NamedTuple):
    """One word that a command gets."""

    text: str
    splits: bool = False  # it may become several words, since something unread in it is not quoted


class Shell(Protocol):
    """What the text is read for."""

    depth: int  # how many texts, substitutions and braces stand in one another

    def says(self, text: str) -> None:
        """Take note of a text that may become a word, or not."""

    def count_text(self, text: str) -> None:
        """Count a text that is read; raises UnreadableError if it is too much."""

    count: Callable[[], None]  # counts a token; raises UnreadableError if there were too many

    @property
    def separators(self) -> re.Pattern[str]:
        """What splits a value that is not quoted into words."""

    def value(self, name: str) -> str:
        """Return the value of a variable, or a mark."""

    def assign(self, name: str, value: Word, *, appends: bool = False) -> None:
        """Take note of a variable; `name[` is an array."""

    def settle(self, *, is_certain: bool) -> None:
        """Take note of the end of a command, and of whether it is run whatever else is."""

    def defines(self, name: str) -> None:
        """Take note of a function."""

    def command(self, words: list[Word]) -> str:
        """Look at a command; returns what it writes, as far as that is known."""

    def here(self, command: list[Word], body: str, *, is_computed: bool) -> None:
        """Look at what a command reads."""


def names_of_numbers(arithmetic: str) -> list[str]:
    """List the variables that an arithmetic expression may set."""
    return _NAME.findall(arithmetic) if _SETS_NUMBERS.search(arithmetic) else []
