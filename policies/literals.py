"""
What of a container's arguments must be written out by DRA.

The kubelet expands `$(GPU_SHARE_FRACTION)` in arguments where the device plugin sets it. By DRA the container runtime
sets it, after the arguments are made.
"""

from typing import Final

from policies.changes import ReplaceArgument
from policies.contract import SHARE_FRACTION, SHARE_MEMORY_MIB
from policies.denial import Findings
from policies.errors import quoted
from policies.frameworks.allowance import Allowance
from policies.pod import Slot

_FRACTION: Final = f"$({SHARE_FRACTION})"
_MEMORY: Final = f"$({SHARE_MEMORY_MIB})"


def literals(
    slot: Slot, fraction: str, allowance: Allowance, found: Findings, *, is_ours: bool = True
) -> tuple[ReplaceArgument, ...]:
    """
    Write the *fraction* where arguments name its variable; warn of the other one, which depends on the GPU.

    *is_ours*: the container has both variables; a partition of another maker's plugin brings none.

    Raises:
        DeniedError: If the arguments are longer than any real pod's.
    """
    made = []
    fields = (("command", slot.container.command), ("args", slot.container.args))
    for field, words in fields:
        for index, word in enumerate(words or ()):
            text = _with_value(word, _FRACTION, fraction)
            if text != word:
                made.append(ReplaceArgument(field, index, allowance.rewrite(text)))
            if _with_value(word, _MEMORY, "") != word:
                why = (
                    "with allocation: dra; read the variable in the program" if is_ours else "with strategy: partition"
                )
                found.warnings.append(
                    f"{quoted(slot.name, 30)}: $({SHARE_MEMORY_MIB}) stays as it is in an argument, {why}"
                )
    return tuple(made)


def _with_value(word: str, reference: str, value: str) -> str:
    """Put a value in the place of a reference; behind an odd number of dollars it is none, since two are how one is."""
    if reference not in word:  # as in almost every word
        return word
    *before, last = word.split(reference)
    written = [one + (reference if (len(one) - len(one.rstrip("$"))) % 2 else value) for one in before]
    return "".join([*written, last])
