"""Which commands of a text read what others write, and of which of them it is certain that nothing else does."""

from itertools import chain, takewhile
from typing import Final

from policies.frameworks.command_line import unwrapped
from policies.frameworks.shell.script import Command, Literal, Reference, Word

_PIPES: Final = frozenset({"|", "|&"})


class Pipes:
    """Follows the commands of one text, in the order in which they stand."""

    def __init__(self) -> None:
        """Begin with a text."""
        self._nest = -1  # in how many compound commands a pipe stands which nobody reads so far

    def follow(self, command: Command, operator: str, nest: int, *, is_empty: bool) -> bool:
        """
        Take note of a command that reads a pipe; *operator* stands behind it, and it in *nest* compound ones.

        Returns whether more may read than that one command: all of a loop, say.
        """
        command.is_piped = operator in _PIPES
        command.reads_pipe = self._nest == nest and not is_empty
        is_of_more = self._nest >= 0 and not command.reads_pipe
        if is_empty and operator == "\n" and nest == self._nest:  # the one that reads stands in a later line
            return False
        self._nest = nest if command.is_piped else -1
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
