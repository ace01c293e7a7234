"""Where a shell's text is being read: in which compound commands, and behind which operator."""

from dataclasses import dataclass, field
from typing import NamedTuple

from policies.frameworks.shell_values import Word

OPENING = frozenset({"if", "while", "until", "for", "select", "{"})
CLOSING = frozenset({"fi", "done", "}"})
_CONDITIONAL = frozenset({"&&", "||", "|", "|&"})  # before a command that may not be run, or not in this shell
_ASIDE = frozenset({"&", "|", "|&"})  # behind a command in a shell of its own


class HereDocument(NamedTuple):
    """What a command reads from the lines that follow."""

    delimiter: str
    is_quoted: bool
    strips_tabs: bool
    command: list[Word]


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
    written: str = ""  # what the last one writes

    def next(self, operator: str) -> None:
        """Go on behind *operator*; the end of a line behind && or | means nothing."""
        if operator != "\n" or self.command or self.sets or self.redirects:
            self.before = operator
        self.command, self.begun, self.sets, self.redirects = [], False, False, False
        self.reads = False

    def is_certain(self, operator: str) -> bool:
        """Whether the command is run in this shell, whatever else is, and its variables stay when it ends."""
        is_alone = self.before not in _CONDITIONAL and operator not in _ASIDE and not self.nest and not self.open
        return is_alone and not self.redirects and not (self.sets and self.command)
