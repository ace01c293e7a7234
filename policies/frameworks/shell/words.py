"""The words of a shell's text: quotes, escapes, and values that are split where nothing quotes them."""

import re
import sys

from policies.frameworks.expansion import A_VALUE, ANYTHING, UnreadableError
from policies.frameworks.shell.expansions import ExpansionReader
from policies.frameworks.shell.script import GIVEN, SEVERAL, SPLIT, Word

BARE = re.compile(r"(?:\[\[|[a-z{}!]+)(?=$|[ \t\n;&|()<>])")
BLANK = re.compile(r"[ \t]+|\\\n")
_BLANK_LINES = re.compile(r"[ \t\n]+|\\\n|#[^\n]*")
_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_PLAIN = re.compile(r"[^ \t\r\n;&|()<>\\'\"$`]+")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)
_OF_ANSI = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


class WordReader(ExpansionReader):
    """Reads the words of one text."""

    def _words(self) -> list[Word]:
        """Read what stands here as one word: it becomes several where an unquoted value has spaces."""
        at = self._at
        word = self._word()
        pieces = word.text.split(SPLIT)
        if self._at == at:
            raise UnreadableError
        if not pieces[0] and not any(sign in self._text[at : self._at] for sign in "'\""):
            pieces = [one for one in pieces if one]
        return [Word(_sole(one), word.splits) for one in pieces]

    def _word(self) -> Word:
        parts: list[str] = []
        splits = opens = separates = False
        text = self._text
        if text.startswith(("<(", ">("), self._at):
            self._at += 1
            self._substituted()
            return Word(A_VALUE)
        while self._at < len(text):
            self._shell.count()
            sign = text[self._at]
            if match := _PLAIN.match(text, self._at):
                parts.append(match[0] if parts else self._at_home(match[0]))
                opens |= "{" in match[0] and match[0] != "{}"
                separates |= "," in match[0] or ".." in match[0]
                splits |= self._shell.depth > 1 and ANYTHING in match[0]  # of a value that a text quotes, in a text
                self._at = match.end()
            elif sign == "\\":
                escaped = text[self._at + 1 : self._at + 2]
                parts.append("" if escaped == "\n" else escaped or "\\")
                self._at += 2
            elif sign == "'":
                end = text.find("'", self._at + 1)
                if end < 0:
                    raise UnreadableError
                parts.append(text[self._at + 1 : end])
                self._at = end + 1
            elif sign == '"':
                parts += self._in_double_quotes()
            elif text.startswith("$'", self._at):
                parts.append(self._escapes())
            elif sign in "$`":
                value = self._expansion()
                splits |= ANYTHING in value
                parts.append(self._shell.separators.sub(SPLIT, value))
            else:
                break
        return Word("".join(parts), splits or (opens and separates))

    def _escapes(self) -> str:
        self._at += 2
        quoted = self._up_to("'")
        if "'" in quoted or not quoted:  # dash ends the word there, or has a dollar
            raise UnreadableError
        return _ESCAPE.sub(_of_escape, quoted)

    def _blank(self, *, lines: bool = False) -> None:
        blank = _BLANK_LINES if lines else BLANK
        while match := blank.match(self._text, self._at):
            self._at = match.end()
            self._shell.count()

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


def _sole(text: str) -> str:
    """What is given elsewhere is read there as a word; a part of a word is not."""
    return GIVEN if text in (GIVEN, SEVERAL) else text.replace(GIVEN, ANYTHING)


def _of_escape(match: re.Match[str]) -> str:
    octal, *hexadecimal, sign = match.groups()
    if sign is not None:
        return _OF_ANSI.get(sign, sign if sign in "\\'\"?" else f"\\{sign}")
    code = int(octal, 8) if octal else int(next(filter(None, hexadecimal)), 16)
    return chr(code) if 0 < code <= sys.maxunicode else ANYTHING
