"""
What a text says that a shell or another program will run: `vllm serve m --gpu-memory-utilization=0.9`.

It is read, never rewritten: quoting and variables are the shell's. What a shell computes cannot be read.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD, Variables

_MOST_UNREAD: Final = 1024  # options in one text
_MOST_COMMANDS: Final = 1024  # backquotes in one text that are told apart, far above any real one
BETWEEN: Final = "\x7f"  # stands between the words of a command line that are read as one text
POSSIBLE: Final = f"{BETWEEN}{BETWEEN}"  # behind it stands what is only one of several that may

# $NAME and ${NAME}; then what else a shell computes, cut at what opens it so that the words inside are read.
_SUBSTITUTION = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*)|\{\w*|.)", re.ASCII | re.DOTALL)
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*+)=", re.ASCII)
_IN_NAME = re.compile(r"\w", re.ASCII)
_NAMING: Final = ("for", "read", "export", "local")
_NAMED = re.compile(rf"\b(?:{'|'.join(_NAMING)})\s+([A-Za-z_]\w*)", re.ASCII)
_SETS = re.compile(f"=|{'|'.join(_NAMING)}")  # without which nothing is set
_REFERENCE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_FEW_NAMES: Final = 8  # so many are looked for one by one sooner than all that are assigned
_MOST_SOUGHT: Final = 1024 * 1024  # characters of a text, for each one of the names that are looked for in it
OF_EVERY_SHELL = frozenset({"IFS", "PWD"})  # which a shell sets at its start, whatever its environment says
# To what they read, or what was given to another command.
SET_BY_SHELLS = frozenset(
    {"_", "COPROC", "DIRSTACK", "FUNCNAME", "MAPFILE", "OPTARG", "READLINE_LINE", "REPLY", "argv"}
)
_SPLITS = frozenset({"IFS"})
_SPECIAL = re.compile(r"[\"'\\$`(){}\[\]]")  # to a shell; most command lines have none of them
# A shell writes what is in braces once for each part, so what an option goes on with in them is unread.
_SPACED = str.maketrans("()}[]{", " " * 5 + UNREAD, "'\"\\")
_BRACES = re.compile(r"\{[^\s{}]*+\}")
_OF_OTHERS: Final = "(\\!^"
# An option whose name is partly unread, and a word that begins with what may be an option.
_PART_UNREAD = re.compile(r"-(?<![\w-]-)([\w-]*+)\x00([\x01-\x03\x08\x0e]?)")
_MAY_BE_OPTION = re.compile(r"\x00\x01(?<![^\s\x7f;&|<>]\x00\x01)")


def in_plain_words(text: str, variables: Variables, *, computed: str = A_VALUE) -> str:
    """Take quotes, brackets and joined line ends out of *text*; put in its variables, and *computed* for the rest."""
    if is_plain(text):
        return text
    if "$" in text or "`" in text:
        text = _substituted(text, variables, computed)
    if "\\" in text:
        text = text.replace("\\\n", "").replace("\\_", " ")  # `env -S` writes a space so
    if text.isascii():
        return text.translate(_SPACED)
    for sign, other in _SPACED.items():  # to translate all at once takes ten times as long there
        text = text.replace(chr(sign), "" if other is None else chr(other))
    return text


def is_plain(text: str) -> bool:
    """Whether *text* has neither quotes nor brackets or variables in it, and its plain words are what it is."""
    return not _SPECIAL.search(text)


def joined(plain: Iterable[str]) -> str:
    """Write texts as one, in which what is certain stands before what is possible."""
    parts = [one.partition(POSSIBLE) for one in plain]
    possible = BETWEEN.join([behind for _, _, behind in parts if behind])
    certain = BETWEEN.join([one for one, _, _ in parts if one])
    return f"{certain}{POSSIBLE}{possible}" if possible else certain


def has_braces(text: str) -> bool:
    """Whether a shell may write a word once for each part of what is in its braces."""
    return any("," in one or ".." in one for one in _BRACES.findall(text))


def has_escapes(text: str) -> bool:
    r"""Whether a shell that is not POSIX may make something else of a word: fish of `\x2d`, csh of `!`."""
    return any(sign in text for sign in _OF_OTHERS)


def unread_options(text: str) -> Iterator[str]:
    """Yield how the options in *text* begin whose names cannot be read; "" for a word that may be any option."""
    if UNREAD not in text:
        return
    if _MAY_BE_OPTION.search(text):
        yield ""
    end = text.rfind(UNREAD) + 2  # with its mark
    for count, match in enumerate(_PART_UNREAD.finditer(text, 0, end)):
        if count == _MOST_UNREAD:
            yield ""  # more of them than in any real text, and each costs time: one may be anything
            return
        if match[2] or match[1].strip("-"):
            yield f"-{match[1]}"


def _substituted(text: str, variables: Variables, computed: str) -> str:
    text = _without_commands(text, computed)
    if "$" not in text:
        return text
    variables.read(text)
    if variables.is_spent:  # what each of them holds would have to be looked at once more
        return _SUBSTITUTION.sub(partial(_unlooked, computed), text)
    assigned = _mentioned_in(text) if computed == ANYTHING else _set_in(text)

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return f"{computed} "
        if name in _SPLITS:
            return " "
        if name in assigned:
            return computed
        known = variables.in_shell(name)
        if known is None and name in SET_BY_SHELLS:
            return computed
        if known is not None and computed == ANYTHING and ("$" in known or "`" in known):
            return computed  # a shell may read it once more
        if known is None or (known == ANYTHING and name in OF_EVERY_SHELL):
            return A_VALUE
        return known

    return _SUBSTITUTION.sub(value, text)


def _without_commands(text: str, computed: str) -> str:
    """Put in for backquotes what they write; the words between them are read."""
    while "``" in text:  # one of several behind each other says what they all do, and each takes more room
        text = text.replace("``", "`")
    if text.count("`") <= _MOST_COMMANDS:
        return text.replace("`", f"{computed} ")
    return f"{text.replace('`', ' ')} {ANYTHING} "  # what so many write may be anything


def _unlooked(computed: str, match: re.Match[str]) -> str:
    """Stand in for what is substituted, without what a variable holds."""
    name = match[1] or match[2]
    if name is None:
        return f"{computed} "
    return " " if name in _SPLITS else ANYTHING


def _mentioned_in(text: str) -> set[str]:
    """List the variables that a text which is not read may set: it names them otherwise than as $NAME, too."""
    names = {braced or bare for braced, bare in _REFERENCE.findall(text)}
    rest = _REFERENCE.sub(" ", text)
    return {one for one in names if one in rest} if len("".join(names)) * len(rest) <= _MOST_SOUGHT else names


def _set_in(text: str) -> set[str]:
    """List the variables that a text sets; those that it does not refer to may be left out."""
    if not _SETS.search(text):
        return set()
    names = {braced or bare for braced, bare in _REFERENCE.findall(text)}
    assigned = _assigned_in(text, names)
    if any(word in text for word in _NAMING):
        assigned.update(_NAMED.findall(text))
    return assigned


def _assigned_in(text: str, names: set[str]) -> set[str]:
    """List those of *names*, and maybe others, that stand before an equals sign."""
    if len(names) <= _FEW_NAMES:
        places = {name: text.find(f"{name}=") for name in names}
        if not any(at > 0 and _IN_NAME.match(text, at - 1) for at in places.values()):  # else a longer name ends there
            return {name for name, at in places.items() if at >= 0}
    return set(_ASSIGNED.findall(text))
