"""The redirections of a shell's text: where commands read and write, and the words that they read."""

import re

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_VALUE
from policies.frameworks.shell.compound_parts import here_document
from policies.frameworks.shell.here_documents import HereDocumentReader
from policies.frameworks.shell.options import may_be_stream
from policies.frameworks.shell.script import Here, Literal, Number, Part, Word
from policies.frameworks.shell.signs import names_file

REDIRECTION = re.compile(r"[0-9]*(<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\())|&>>?")
_OF_FILE = tuple("-0123456789")


class RedirectionReader(HereDocumentReader):
    """Reads the redirections of one text."""

    _must_end: bool

    def _redirect(self, match: re.Match[str]) -> None:
        if self._command.words and names_file(self._command.words[-1]) and self._text[self._at - 1] == "}":
            raise UnreadableError  # {NAME}> sets NAME to a number
        self._at = match.end()
        self._command.redirects = True
        self._command.reads_else |= "<" in match[0]
        self._must_end |= match[0].startswith("&")
        self._command.duplicates |= match[0].endswith("&")
        operator = match[1]
        if operator in ("<<", "<<-"):
            here, self._at = here_document(self._text, self._at, operator, self._command)
            self._here.append(here)
            return
        self._blank()
        word = self._word()
        to = "".join([one.text for one in word if isinstance(one, Literal)])
        if match[0].endswith("&") and to[:1] in _OF_FILE and not to.rstrip("-").isdigit() and to != "-":
            raise UnreadableError  # `>&-x` closes a file, and goes on with x
        self._follow(match[0], word)
        if operator == "<<<":
            self._command.reads.append(Here(word, is_quoted=True))
        else:
            self._command.beside.append(word)
            self._command.reads_file |= operator == "<" or match[0] in ("<>", "0<>")

    def _follow(self, sign: str, word: Word) -> None:
        """Take note of where a command writes, and its errors, which may be the same."""
        now = self._command
        to = "".join(map(_written, word))
        number = sign.rstrip("<>&|") or ("0" if "<" in sign else "1")
        if sign.endswith("&") and to.rstrip("-").isdigit() | (to == "-"):
            is_out = {"1": now.writes_out, "2": now.tells_errors, "": False}.get(to.rstrip("-"), True)
        else:
            is_out = may_be_stream(to)
            now.duplicates |= is_out and not sign.endswith("<")
            number = "12" if sign.startswith("&") or sign == ">&" else number
        if "1" in number:
            now.writes_out = is_out
        if "2" in number:
            now.tells_errors = is_out


def _written(part: Part) -> str:
    """Write a part of a word as a pattern."""
    match part:
        case Literal(text):
            return text.replace(A_VALUE, "0")  # of `$$`, say
        case Number():
            return "0"
        case _:
            return "*"
