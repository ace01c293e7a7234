"""What signs in a shell's text stand for: escapes, names that arithmetic sets, an index, what a pattern may do."""

import re
import sys
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_NAME, A_NUMBER, A_VALUE, ANYTHING, TOLD, UNREAD
from policies.frameworks.shell.script import Literal, Word

# Where each branch begins with one sign, the engine skips to these.
_SETS = re.compile(r"[A-Za-z_0-9\[\]]*+:?=")  # `${!A=x}`
_SETS_ELEMENT = re.compile(r"\][A-Za-z_0-9\[]*+:?=")  # `${A[0]:=x}`
_QUOTED_STAR = re.compile(r"@[A-Za-z]$|~|\\[*?\[]|'[^'\"]*[*?\[]|\"[^'\"]*[*?\[]")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)
_OF_ANSI: Final = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SETS_NUMBERS = re.compile(r"=(?<![=!<>]=)(?!=)|<<=|>>=|\+\+|--")
# What a reference stands for is set: `$n=95`, `${n}++`, and with a mark in its place.
_SETS_COMPUTED = re.compile(
    r"[$`})\0][\w\[\]]*+\s*+(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*+[\w\[]*+[$`\0]", re.ASCII
)
_INDEX = re.compile(r"\[[^]]*\]\+?=")
_VALUES: Final = "".join([one.removeprefix(UNREAD) for one in (A_VALUE, A_NAME, A_NUMBER, TOLD)])
_MAY_REFER = re.compile(rf"{UNREAD}(?![{_VALUES}])|\$\{{?!?\w*{UNREAD}")
_POSITIONAL: Final = re.compile(r"\$\{?[#!]?[0-9@*]")


def unescaped(text: str) -> str:
    """Return what bash makes of *text* in `$'text'`."""
    return _ESCAPE.sub(_of_escape, text)


def _of_escape(match: re.Match[str]) -> str:
    octal, *hexadecimal, sign = match.groups()
    if sign is not None:
        return _OF_ANSI.get(sign, sign if sign in "\\'\"?" else f"\\{sign}")
    code = int(octal, 8) if octal else int(next(filter(None, hexadecimal)), 16)
    return chr(code) if 0 < code <= sys.maxunicode else ANYTHING


def names_of_numbers(arithmetic: str) -> list[str]:
    """List the variables that an arithmetic expression may set."""
    return _NAME.findall(arithmetic) if _SETS_NUMBERS.search(arithmetic) else []


def sets_computed(arithmetic: str) -> bool:
    """Whether an arithmetic expression may set a variable whose name is computed."""
    return _SETS_COMPUTED.search(arithmetic) is not None


def is_index(operand: Word) -> bool:
    """Whether *operand* is an index, and nothing else: `[0]`, `[$I]`."""
    texts = [one.text for one in operand if isinstance(one, Literal)]
    text = "".join(texts)
    return texts[:1] != [] and text.startswith("[") and texts[-1].endswith("]") and text.count("]") == 1


def is_odd(operand: str) -> bool:
    """Whether what stands behind the name in `${NAME...}` assigns, or its stars are not all of a pattern."""
    sets = _SETS.match(operand) or (operand.startswith("[") and _SETS_ELEMENT.search(operand))
    return bool(sets) or _QUOTED_STAR.search(operand) is not None


def assigns_in_index(text: str) -> bool:
    """Whether arithmetic that comes to *text* may set a variable: `x[${A:=1}]`."""
    opened = text.find("[")
    begun = text.find("${", opened) if opened >= 0 else -1
    return begun >= 0 and text.find("=", begun) >= 0


def may_refer(text: str) -> bool:
    """Whether what is not read in a text may refer to a variable: a value does not, unless it ends a reference."""
    return UNREAD in text and _MAY_REFER.search(text) is not None


def computes(text: str) -> bool:
    """Whether a text has what a shell computes."""
    return "$" in text or "`" in text


def has_positional(text: str) -> bool:
    """Whether a text refers to words that it is given."""
    return _POSITIONAL.search(text) is not None


def begins_at_home(value: Word) -> bool:
    """Whether a shell puts HOME into a value behind a colon."""
    return any(isinstance(one, Literal) and not one.is_quoted and ":~" in one.text for one in value)


def without_index(word: Word) -> Word:
    """Return an element without the index that it may say: `A=([3]=x)`."""
    first = word[0]
    if not isinstance(first, Literal) or first.is_quoted or not first.text.startswith("["):
        return word
    match = _INDEX.match(first.text)
    if match is None:
        raise UnreadableError
    return (Literal(first.text[match.end() :], is_quoted=False), *word[1:])


def text_of_index(word: Word) -> str:
    """Return what stands in front of an element's value, and arithmetic evaluates: `[A=3]` in `A=([A=3]=x)`."""
    match = _INDEX.match(word[0].text) if isinstance(word[0], Literal) and not word[0].is_quoted else None
    return match[0][: match[0].rindex("]")] if match else ""


def names_file(word: Word) -> bool:
    """Whether a word may be `{NAME}` before a redirection."""
    return isinstance(word[0], Literal) and word[0].text.startswith("{")
