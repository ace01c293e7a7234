"""Variables in which a platform writes a container's own command line and variables once more, for its own programs."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from policies.frameworks.command_line import SHELLS, CommandLine
from policies.pod import Variable

# On every container until argoproj/argo-workflows#13761, of October 2024, and on its own one since.
_OF_ARGO: Final = "ARGO_TEMPLATE"
_NAMING: Final = (_OF_ARGO, "environ")  # by itself, and by the file in which Linux has all of them
_in_text = re.compile(rf"(?<![\w.-])(?:{'|'.join(sorted(SHELLS))}|busybox|toybox)(?![\w.-])").search
_FILES: Final = ("script", "raw")  # what Argo writes into files of the container stands nowhere else


def copy_in(env: Sequence[Variable], line: CommandLine) -> int:
    """
    Find the place of such a copy in *env*, a document that no word and no other variable names; -1 without one.

    What it repeats is judged where it stands: programs are started by words and variables, and never by the copy. A
    shell can run all its variables, so it has none.
    """
    named = [place for place, one in enumerate(env) if one.name == _OF_ARGO]
    if len(named) != 1 or _has_shell(line) or not _is_started_by_argo(line.words):
        return -1
    others = (one.value or "" for one in env if one.name != _OF_ARGO)
    texts = chain(line.words, *line.hooks, others)
    is_named = any(name in text for text in texts for name in _NAMING)
    return -1 if is_named or not _repeats(env[named[0]].value or "") else named[0]


def _has_shell(line: CommandLine) -> bool:
    """Whether a shell runs, or may, whatever starts it."""
    return line.runs_through_shell or any(map(_in_text, chain(line.words, *line.hooks)))


def _is_started_by_argo(words: Sequence[str]) -> bool:
    return len(words) > 1 and words[0].rpartition("/")[2] == "argoexec" and words[1] == "emissary"


def _repeats(text: str) -> bool:
    """Whether a document has nothing that stands nowhere else."""
    try:
        left: list[Any] = [msgspec.json.decode(text, type=dict[str, Any])]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    while left:
        one = left.pop()
        if isinstance(one, dict) and any(key.lower() in _FILES for key in one):
            return False
        inner: Iterable[Any] = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        left.extend(inner)
    return True
