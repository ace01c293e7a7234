"""What tools write that cannot begin an option, and has no space: numbers, dates, paths, names of the system."""

import re
from collections.abc import Sequence
from typing import Final

from policies.frameworks.expansion import A_NUMBER, A_VALUE, UNREAD

_NUMBERING: Final = frozenset(
    {"arch", "getconf", "hostname", "id", "nproc", "nvidia-smi", "uname", "uuidgen", "whoami", "pwd"}
)
_AGO: Final = r"[-+]?[0-9]{1,2} (?:second|sec|minute|min|hour|day|week|month)s?(?: ago)?"
# None of them is before 1970, whose seconds begin with a dash.
_DAY: Final = rf"now|today|yesterday|tomorrow|@?[0-9]{{1,10}}|20[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}|{_AGO}"
_DATE: Final = (
    rf"-[du]|-I(?:date|hours|minutes|seconds)?|{_DAY}|(?:-d ?|--date=)(?:{_DAY})"
    r"|\+(?:%[YmdHMSsFTjyN]|[\w.:])(?:(?>%[YmdHMSsFTjyN]|[\w.:-]++))*+"
)
_PATH: Final = r"(?!-)(?:(?>(?!/-)[\w./:@%+=-]))++"  # none of its parts begins with a dash
_WITHOUT_EQUALS_SIGN: Final = rf"(?!.*=){_PATH}"  # so that no variable is set by what is put together
_NUMBER: Final = f"(?:(?>[0-9]++|{A_VALUE}|{A_NUMBER}))++"
# The tools that write a value whatever operands of this form they have.
_OPERANDS = {
    name: re.compile(pattern, re.ASCII)
    for names, pattern in (
        ("basename dirname which", _PATH),
        ("date", _DATE),
        ("mktemp", rf"-[dqu]+[tp]?|-[tp]|{_WITHOUT_EQUALS_SIGN}"),
        ("seq", _NUMBER),
        ("shuf", r"-i[0-9]+-[0-9]+|-n[0-9]+|-[in]|[0-9]+(?:-[0-9]+)?"),
        ("wc", r"-[clmwL]+"),  # of a file it writes the name as well
    )
    for name in names.split()
}
_PRINTED: Final = r"%(?:0[0-9]{1,3})?d|%x|%\.[0-9]f"  # never empty
_SIGN: Final = rf"[\w./:]|{_PRINTED}"
# A dash stands behind what is never empty: in each line, since the words that are left begin the format anew. And a
# digit or a dash is in it behind all directories, so that it names neither a variable of a setting nor `sudo`.
_HAS_NUMBER: Final = r"(?:(?>[^/]*+/))*+(?:(?>[^/0-9%-]|%(?!d)))*+(?:[0-9-]|%d)"
_FORMAT = re.compile(rf"(?={_HAS_NUMBER})(?:(?:{_SIGN})(?:(?>{_SIGN}|-|%s))*+|(?:(?>{_SIGN}|%s))++)(?:\\n)?", re.ASCII)
_FORMATTED = re.compile(rf"{_NUMBER}|(?!.*[/=]){_PATH}", re.ASCII)
_OF_FILE = re.compile(_PATH, re.ASCII)
# The tools that write digits alone with these operands.
_DIGITS: Final = {
    "date": re.compile(r"(?:-u )?\+(?:%[YmdHMSsjN])++"),
    "getconf": re.compile(r"_NPROCESSORS_(?:ONLN|CONF)"),
    "grep": re.compile(r"-c [\w.,:^$/]+(?: [\w./]+)?"),  # no star, which may stand for more files and their names
    "id": re.compile(r"-[ug]"),
    "nproc": re.compile(r"(?:--all)? ?(?:--ignore[= ][0-9]+)?"),
    "stat": re.compile(r"-c %[sY] .*+"),
    "wc": re.compile(r"-[clmwL]"),
}
_LONGEST: Final = 256  # characters of an operand
_COUNTED: Final = 3  # -c, a pattern and a file; of several, grep writes the names


def mark_of_written(words: Sequence[str]) -> str:
    """Return the mark for what a tool writes; "" if it may be anything."""
    if not writes_a_value(words):
        return ""
    form = _DIGITS.get(words[0].rpartition("/")[2])
    return A_NUMBER if form and form.fullmatch(" ".join(words[1:])) else A_VALUE


def writes_a_value(words: Sequence[str]) -> bool:
    """Whether what a tool writes cannot begin an option and has no space."""
    name, operands = words[0].rpartition("/")[2], words[1:]
    if any(len(one) > _LONGEST for one in operands):
        return False
    if form := _OPERANDS.get(name):
        is_range = name != "shuf" or any(one.startswith("-i") for one in operands)  # else of the lines that it reads
        return is_range and all(map(form.fullmatch, operands))
    match name:
        case "openssl":
            return operands[:2] == ["rand", "-hex"]
        case "grep":
            return operands[:1] == ["-c"] and len(operands) <= _COUNTED
        case "printf":
            return _is_format(operands[:1]) and all(map(_FORMATTED.fullmatch, operands[1:]))
        case "stat":
            return operands[:2] in (["-c", "%s"], ["-c", "%Y"]) and all(map(_OF_FILE.fullmatch, operands[2:]))
        case _:
            return name in _NUMBERING and not any(UNREAD in one or one.startswith("--files0") for one in operands)


def _is_format(operands: Sequence[str]) -> bool:
    return bool(operands) and _FORMAT.fullmatch(operands[0]) is not None
