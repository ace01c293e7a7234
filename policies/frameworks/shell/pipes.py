"""Which commands of a text read what others write, and of which of them it is certain that nothing else does."""

import re
from itertools import chain, takewhile
from typing import Final

from policies.frameworks.command_line import unwrapped
from policies.frameworks.shell.script import Command, Literal, Reference, Word

_PIPES: Final = frozenset({"|", "|&"})
_DOWNLOADING: Final = frozenset({"curl", "wget"})
_LONG: Final = (
    "compressed|fail|https-only|insecure|location|no-check-certificate|proto|quiet|retry|show-error|silent|ssl-reqd"
)
# Of another host, and with no more than one word for a shell that gets it, with an error, say.
_URL: Final = r"https?://(?![\w.-]*(?i:localhost))[\w.-]+\.[A-Za-z]{2,}(?::[0-9]+)?(?:/[\w./?&=%:@,+~#!-]*)?"
# None of these words makes it read a file of the container.
_OF_DOWNLOAD = re.compile(
    rf"-[fgkLqsSvN46#]*(?:O-?)?|--(?:{_LONG}|output-document=-|tlsv1(?:\.[0-3])?)|(?:--proto)?=https|[0-9]+|{_URL}"
)


class Pipes:
    """Follows the commands of one text, in the order in which they stand."""

    def __init__(self) -> None:
        """Begin with a text."""
        self._writer = Command()  # the last one
        self._nest = -1  # in how many compound commands a pipe stands which nobody reads so far

    def follow(self, command: Command, operator: str, nest: int, *, is_empty: bool) -> bool:
        """
        Take note of a command that reads a pipe; *operator* stands behind it, and it in *nest* compound ones.

        Returns whether more may read than that one command: all of a loop, say.
        """
        command.is_piped = operator in _PIPES
        command.reads_pipe = self._nest == nest and not is_empty
        if command.reads_pipe and not command.reads_else:
            command.downloader = _downloader(self._writer)
        is_of_more = self._nest >= 0 and not command.reads_pipe
        if is_empty and operator == "\n" and nest == self._nest:  # the one that reads stands in a later line
            return False
        self._nest = nest if command.is_piped else -1
        self._writer = command
        return is_of_more


def reads(command: Command) -> bool:
    """Whether a command reads a file, a text or a pipe."""
    return bool(command.reads_file or command.reads or command.reads_pipe)


def reads_alone(command: Command) -> bool:
    """Whether nothing but its own program can read what a command reads: no other is run to make its words."""
    texts = (one.body for one in command.reads)
    words = chain(command.words, command.beside, (one.value for one in command.sets), texts)
    is_more = command.arrays or command.calculates or command.is_test
    return not is_more and bool(command.words) and all(map(_runs_nothing, words))


def program_read_by(command: Command) -> str:
    """Return the program that reads what a command reads, behind wrappers such as `sudo`; "" if it is not written."""
    whole = takewhile(lambda word: len(word) == 1 and isinstance(word[0], Literal), command.words)
    line = ["".join([part.text for part in word if isinstance(part, Literal)]) for word in whole]
    at, takes_text = unwrapped(line)
    return "" if takes_text or at >= len(line) else line[at]


def _runs_nothing(word: Word) -> bool:
    return all(
        isinstance(part, Literal) or (isinstance(part, Reference) and _runs_nothing(part.operand)) for part in word
    )


def _downloader(command: Command) -> str:
    """Return the program of a command that writes a download and nothing of the container; "" if it may."""
    if command.program not in _DOWNLOADING:
        return ""
    line = ["".join([part.text if isinstance(part, Literal) else " " for part in word]) for word in command.words]
    return command.program if all(map(_OF_DOWNLOAD.fullmatch, line[1:])) else ""
