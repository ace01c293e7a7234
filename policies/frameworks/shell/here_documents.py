"""The here-documents of a shell's text: what commands read from the lines that follow."""

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.shell.compound_parts import HereDocument
from policies.frameworks.shell.compounds import CompoundReader
from policies.frameworks.shell.reading import Counts
from policies.frameworks.shell.script import Here, Literal, Part


class HereDocumentReader(CompoundReader):
    """Reads the here-documents of one text."""

    def __init__(self, text: str, count: Counts, depth: int = 0, *, is_bash: bool = False) -> None:
        """Read *text*, in which *count* counts the tokens."""
        super().__init__(text, count, depth, is_bash=is_bash)
        self._here: list[HereDocument] = []  # that begin at the next line

    def _here_documents(self) -> None:
        waiting, self._here = self._here, []
        for one in waiting:
            body = self._body(one)
            if not one.is_quoted and "\\\n" in body:
                raise UnreadableError  # of the line behind it, too, which may seem to be the end
            parts: tuple[Part, ...] = (Literal(body),)
            if not one.is_quoted:
                parts = self._expanded(body)
            one.command.reads.append(Here(parts, one.is_quoted))

    def _waits(self) -> bool:
        return bool(self._here)

    def _body(self, here: HereDocument) -> str:
        begin = self._at
        while self._at < len(self._text):
            self._count()
            end = self._text.find("\n", self._at)
            end = len(self._text) if end < 0 else end
            line = self._text[self._at : end]
            if here.ends_at(line):
                body = self._text[begin : self._at]
                self._at = end
                return body
            self._at = end + 1
        raise UnreadableError
