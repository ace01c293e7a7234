"""
What a control daemon answers, read with suspicion.

A program that is root in its container can take the daemon's socket away and answer itself.

NVIDIA documents the questions and not how the answers look. What is known of them, from where they were seen in public:
`get_server_list` is a PID on each line, `get_server_status` a word, a percentage `12.0`, and a limit on memory `5G` for
5120M and `3G` for 3840M (T4, A100): whole gigabytes, cut off. All of what is taken for granted about answers is here.
"""

import re
from decimal import Decimal
from typing import Literal

from plugin.errors import AnswerError

ServerState = Literal["INITIALIZING", "ACTIVE", "FAULT", "UNKNOWN"]  # the last is ours

_STATES: tuple[ServerState, ...] = ("INITIALIZING", "ACTIVE", "FAULT")
_PID = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_WORD = re.compile(r"[A-Z][A-Z_]{2,30}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?%?", re.ASCII)
_SAYS_NONE = frozenset({"no", "none", "empty"})
_SERVERS = frozenset({"server", "servers"})
_BESIDE = frozenset(
    {"active", "are", "cuda", "currently", "found", "is", "list", "mps", "now", "running", "there", "yet"}
)
_MOST_SERVERS = 16  # a daemon has one, and another for a moment when the user changes
_LONGEST_EXCERPT = 200


def server_pids(answer: str) -> tuple[int, ...]:
    """
    Read the answer to `get_server_list`: one PID on each line, none where no client has come yet.

    That there is none may be said in words, which no document gives: a wrong guess would end a daemon that is fine.

    Raises:
        AnswerError: If it is something else.
    """
    if _says_no_server(answer):
        return ()
    lines = answer.split()
    if len(lines) > _MOST_SERVERS or not all(_PID.fullmatch(line) for line in lines):
        raise AnswerError(f"get_server_list: expected a few PIDs, one on each line, got {excerpt(answer)}")
    return tuple(dict.fromkeys(int(line) for line in lines))


def _says_no_server(answer: str) -> bool:
    """Whether it says that and no more: an error can have the same words, such as one about no connection."""
    words = set(re.findall(r"\w+", answer.lower()))
    return bool(words & _SAYS_NONE and words & _SERVERS) and words <= _SAYS_NONE | _SERVERS | _BESIDE


def server_state(answer: str) -> ServerState:
    """
    Read the answer to `get_server_status`.

    One word in capitals that is no documented state is "UNKNOWN": a newer driver may have more of them.

    Raises:
        AnswerError: If it names no state, or several.
    """
    if _WORD.fullmatch(answer.strip()) and answer.strip() not in _STATES:
        return "UNKNOWN"
    words = re.findall(r"[A-Za-z_]+", answer)
    named = [state for state in _STATES if state in words]
    if len(named) != 1:
        raise AnswerError(f"get_server_status: expected one of {', '.join(_STATES)}, got {excerpt(answer)}")
    return named[0]


def percentage(answer: str) -> float | None:
    """Read the answer to a question for an active thread percentage, such as 20.0; None if it is none."""
    text = answer.strip()
    return float(text.rstrip("%")) if _NUMBER.fullmatch(text) else None


_UUID = re.compile(r"GPU-[0-9a-f-]{36}", re.IGNORECASE | re.ASCII)
_AMOUNT = re.compile(r"(?<![\w.-])([0-9]{1,20}(?:\.[0-9]{1,6})?) ?([KMGT]?)(?:i?B)?(?![\w.])", re.IGNORECASE | re.ASCII)
_MIB_OF = {"K": Decimal(1) / 1024, "M": Decimal(1), "G": Decimal(1024), "T": Decimal(1024 * 1024)}
_BYTES_PER_MIB = 1024 * 1024


def keeps_memory_limit(answer: str, limit_mib: int) -> bool:
    """
    Read the answer to a question for a limit on memory: whether that is *limit_mib*.

    A number with a unit is taken as rounded to it, either way, by less than a gigabyte: 0G is less than one, and 0T
    too. One without a unit is the limit in MiB, KiB or bytes, or it is none.
    """
    amounts = _AMOUNT.findall(_UUID.sub("", answer[:_LONGEST_EXCERPT]))
    if not any(unit for _, unit in amounts):
        wanted = {limit_mib, limit_mib * 1024, limit_mib * _BYTES_PER_MIB}
        return any(Decimal(number) in wanted for number, _ in amounts)
    said = [(Decimal(number), _MIB_OF[unit.upper()]) for number, unit in amounts if unit]
    return all(abs(number * mib - limit_mib) < min(mib, _MIB_OF["G"]) for number, mib in said)


def excerpt(text: str) -> str:
    """Quote the beginning of a text that may be anything."""
    words = " ".join(text.split())
    return ascii(words[:_LONGEST_EXCERPT]) if words else "nothing"
