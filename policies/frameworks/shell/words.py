"""The words of a shell's text: quotes, escapes, and what is expanded in them."""

import re
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.expansions import DOLLAR, ExpansionReader
from policies.frameworks.shell.script import Literal, Part, Script, Word

BARE = re.compile(r"(?:\[\[|[a-z{}!]+)(?=(?:\\\n)*+(?:$|[ \t\n;&|()]|[<>](?!\()))")
BLANK = re.compile(r"[ \t]+|(?:\\\n)+")
_BLANK_LINES = re.compile(rf"[ \t\n]+|{BLANK.pattern}|#[^\n]*")
# What stands before and behind such ends of lines, and is one word or operator if they are left out.
_ONE_TOKEN = re.compile(r"[^\s;&|()<>][^\s;&|)]|[;&|<>][;&|<>]|[<>(]\(")
_ONE_NAME = re.compile(r"[\w{}!+\[\]]+(?:\\\n)+[^\\]")  # a name, a number or a reserved word that goes on behind one
_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_SUBSTITUTION: Final = ("<(", ">(")  # of a process
_TOKENS_OF_WORD: Final = 2  # it, and where it ends
_BEHIND_WORD: Final = " \t\r\n;&|()<>"
_PLAIN = re.compile(rf"(?>[^{_BEHIND_WORD}\\'\"$`]+|\\\n)++")
_APART: Final = ("(", "<", ">")  # that what is a word by itself may be one token with
_WHOLE = re.compile(rf"[^{_BEHIND_WORD}\\'\"$`{{~][^{_BEHIND_WORD}\\'\"$`{{]*+(?=[ \t\n;&|)]|\Z)")  # as most words are
_ANYTHING = Literal(ANYTHING, is_quoted=False)


class WordReader(ExpansionReader):
    """Reads the words of one text."""

    def _absorb(self, script: Script) -> None:
        raise NotImplementedError

    def _waits(self) -> bool:
        raise NotImplementedError

    def _word(self) -> Word:
        """
        Read what stands here as one word.

        Raises:
            UnreadableError: If there is none.
        """
        at = self._at
        if match := _WHOLE.match(self._text, at):
            self._count(_TOKENS_OF_WORD)
            self._at = match.end()
            return (Literal(match[0], is_quoted=False),)
        self._count()
        parts = self._parts()
        if self._at == at:
            raise UnreadableError
        return tuple(parts)

    def _parts(self) -> list[Part]:
        text, begin = self._text, self._at
        parts = self._file_of_process()
        opens = separates = False
        while self._at < len(text):
            self._count()
            sign = text[self._at]
            if sign in _BEHIND_WORD:
                break
            if sign in "$`":
                parts += self._expansion()
            elif match := _PLAIN.match(text, self._at):
                plain = self._joined(match, is_first=not parts)
                parts += [Literal(plain, is_quoted=False)] if parts and plain else self._at_home(plain)
                opens |= "{" in plain and plain != "{}"
                separates |= "," in plain or ".." in plain
                self._at = match.end()
            elif sign == "\\":
                parts.append(Literal(text[self._at + 1 : self._at + 2] or "\\"))
                self._at += 2
            elif sign == "'":
                end = text.find("'", self._at + 1)
                if end < 0:
                    raise UnreadableError
                parts.append(Literal(text[self._at + 1 : end]))
                self._at = end + 1
            else:
                parts += self._in_double_quotes()
        if self._at > begin and text.startswith(_SUBSTITUTION, self._at):  # of its file bash makes one word with these
            raise UnreadableError
        if DOLLAR in parts and not all(isinstance(one, Literal) for one in parts):  # bash splits no value beside it
            raise UnreadableError
        return [*parts, _ANYTHING] if opens and separates else parts  # braces: a word for each part of what is in them

    def _joined(self, plain: re.Match[str], *, is_first: bool) -> str:
        """
        Leave out of a part of a word the ends of lines behind backslashes, as all shells do.

        Raises:
            UnreadableError: If it may be no part of a word then: a name that is set, a reserved word, a descriptor.
        """
        if "\\" not in plain[0]:
            return plain[0]
        if (is_first and _ONE_NAME.match(plain[0])) or self._text.startswith(_APART, plain.end()):
            raise UnreadableError
        return plain[0].replace("\\\n", "")

    def _file_of_process(self) -> list[Part]:
        """Read the commands whose output or input a word is, if it begins with them."""
        if not self._text.startswith(_SUBSTITUTION, self._at):
            return []
        is_read = self._text[self._at] == "<"
        self._at += 1
        script = self._inside()
        for one in script.commands:
            one.reads_pipe = True  # what is written there, or what the command around it reads
        self._command.reads_file |= is_read
        self._absorb(script)
        return [Literal("/dev/fd/63")]

    def _blank(self, *, lines: bool = False) -> None:
        blank = _BLANK_LINES if lines else BLANK
        while match := blank.match(self._text, self._at):
            if lines and "\n" in match[0] and self._waits():
                raise UnreadableError  # a here-document begins there
            self._skip(match)
            self._count()

    def _skip(self, blank: re.Match[str]) -> None:
        """
        Go behind blanks, or ends of lines behind backslashes, which all shells leave out.

        Raises:
            UnreadableError: If that makes one token of two: a semicolon before such an end, and one behind it.
        """
        text, begin, self._at = self._text, blank.start(), blank.end()
        if text[begin] == "\\" and _ONE_TOKEN.match(text[begin - 1 : begin] + text[self._at : self._at + 1]):
            raise UnreadableError

    def _takes(self, reserved: str) -> bool:
        self._blank(lines=True)
        match = BARE.match(self._text, self._at)
        if match is None or match[0] != reserved:
            return False
        self._at = match.end()
        return True

    def _name(self) -> str:
        self._blank()
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise UnreadableError
        self._at = match.end()
        return match[0]
