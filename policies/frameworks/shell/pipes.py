"""Which commands of a text read what others write, and of which of them it is certain that nothing else does."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from policies.frameworks.shell.script import Command, Literal, Reference, Word

_PIPES: Final = frozenset({"|", "|&"})
_OF_OTHERS: Final = ("/dev/fd", "/proc/")  # files in a word by which more commands read


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
        waits = self._nest >= 0 and is_empty and nest == self._nest and operator == "\n"
        command.reads_pipe = self._nest == nest and not is_empty
        is_of_more = self._nest >= 0 and not (waits or command.reads_pipe)
        if not waits:
            self._nest = nest if command.is_piped else -1
        return is_of_more


def reads_alone(command: Command) -> bool:
    """Whether nothing but its own program can read what a command reads: no other is run to make its words."""
    words = chain(command.words, command.beside, (one.value for one in command.sets))
    is_more = command.arrays or command.reads or command.calculates or command.is_test
    return not is_more and bool(command.words) and all(map(_runs_nothing, words))


def _runs_nothing(word: Word | Iterable[Literal]) -> bool:
    for part in word:
        if isinstance(part, Literal):
            if any(one in part.text for one in _OF_OTHERS):
                return False
        elif not isinstance(part, Reference) or not _runs_nothing(part.operand):
            return False
    return True
