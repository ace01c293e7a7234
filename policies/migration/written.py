"""A text inside a file, and the problems in it with the lines of the file."""

import msgspec

from policies.errors import Problem
from policies.reading.document import Node


class Text(msgspec.Struct, frozen=True):
    """A configuration as it stands in a file."""

    name: str  # in its ConfigMap; empty for a file of its own
    text: str
    line: int = 1  # of its first line in the file
    has_lines: bool = True  # False: it is written in quotes, so that its lines are not lines of the file


class Place(msgspec.Struct, frozen=True):
    """Where a configuration stands, and what is wrong with it."""

    file: str
    written: Text
    problems: list[Problem]

    def line(self, node: Node) -> int:
        """The line of the file in which *node*, or the key that names it, stands."""
        return self.line_of(node.key_line or node.line)

    def line_of(self, line: int) -> int:
        """The line of the file for a *line* of the text; where the text is in quotes, that in which it begins."""
        return self.written.line + line - 1 if self.written.has_lines else self.written.line

    def add(self, key: str, line: int, message: str) -> None:
        """Note a problem; *line* is of the text."""
        name = self.written.name
        inner = "" if self.written.has_lines else f" line {line} of it,"
        field = f"{name},{inner} {key}".rstrip(", ") if name else key
        self.problems.append(Problem(self.file, self.line_of(line), field, message))

    def fault(self, key: str, node: Node, message: str) -> None:
        """Note what is wrong with the value of a key."""
        self.add(key, node.key_line or node.line, message)
