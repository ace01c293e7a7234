"""Variables in which a platform writes a container's own command line and variables once more, for its own programs."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from policies.pod import Variable

# On every container until argoproj/argo-workflows#13761, of October 2024, and on its own one since.
_OF_ARGO: Final = "ARGO_TEMPLATE"
_FILES: Final = ('"script"', '"raw"')  # what Argo writes into files of the container stands nowhere else


def is_copy(env: Sequence[Variable], position: int, words: Iterable[str]) -> bool:
    """
    Whether the variable at *position* is such a copy: a document that no word and no other variable names.

    What it repeats is judged where it stands: programs are started by *words* and *env*, and never by the copy.
    """
    variable = env[position]
    text = variable.value or ""
    if variable.name != _OF_ARGO or any(one in text for one in _FILES) or not _is_document(text):
        return False
    others = (one.value or "" for place, one in enumerate(env) if place != position)
    return not any(_OF_ARGO in one for one in chain(words, others))


def _is_document(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True
