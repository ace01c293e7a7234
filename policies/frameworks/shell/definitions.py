"""
Which functions a text has certainly defined where a command stands, so that it calls one of them and no program.

They are defined in the outermost commands, behind nothing but others in their line: after an error bash goes on with
the next one. What stands behind them in the text is run after them, and somebody else sees whether they are taken back.
"""

import re
from typing import Final

from policies.frameworks.shell.script import JOINING, Command

_ENDING: Final = frozenset({"\n", ";", ""})
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # that every shell takes for a function


class Definitions:
    """Follows the commands of one text, in the order in which they stand."""

    def __init__(self, *, is_outermost: bool) -> None:
        """Begin with a text; only in the *outermost* commands functions are defined for certain."""
        self.names: set[str] = set()
        self._is_outermost = is_outermost
        self._is_first = is_outermost  # nothing but functions stands before in the line
        self._defined = ""  # the function in whose body it is, and which is defined there
        self._was_defined = False  # before that, too
        self._ended = ""  # the one whose body has just ended
        self._before = ""  # the operator
        self._is_timed = False  # dash takes `time` for a program, which starts another one

    def begin(self, name: str, nest: int) -> None:
        """Take note of the body of the function *name* in braces; it stands in *nest* compound commands."""
        if self._is_first and not nest and _NAME.fullmatch(name):
            self._defined = name
            self._was_defined = name in self.names
            self.names.add(name)  # whoever runs the body has called it

    def end(self, nest: int) -> None:
        """Take note of a brace that closes."""
        if nest:
            return
        if not self._was_defined:
            self.names.discard(self._defined)
        self._defined, self._ended = "", self._defined

    def time(self) -> None:
        """Take note of `time` before a command."""
        self._is_timed = True

    def follow(self, command: Command, operator: str, nest: int, *, is_empty: bool) -> bool:
        """Say whether *command* calls a function of the text; *operator* stands behind it, and it in *nest* others."""
        is_call = bool(self.names) and not self._is_timed and command.program in self.names
        self._is_timed = False
        waits = is_empty and operator == "\n" and self._before in JOINING and not self._ended
        if self._defined or waits:
            return is_call
        if self._ended and operator in _ENDING:
            self.names.add(self._ended)
        else:
            self._is_first = self._is_outermost and operator == "\n" and not nest
        self._before, self._ended = operator, ""
        return is_call
