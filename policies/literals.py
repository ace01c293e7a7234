"""
What of a container's arguments must be written out by DRA.

The kubelet expands `$(GPU_SHARE_FRACTION)` in arguments where the device plugin sets it. By DRA the container runtime
sets it, after the arguments are made.
"""

import re

from policies.changes import ReplaceArgument
from policies.contract import SHARE_FRACTION, SHARE_MEMORY_MIB
from policies.denial import Findings
from policies.errors import quoted
from policies.frameworks.allowance import Allowance
from policies.pod import Slot

# Two dollars are how one is written: $$(GPU_SHARE_FRACTION) is no variable.
_DOLLARS = r"(?<!\$)(?P<dollars>(?:\$\$)*)"
_FRACTION = re.compile(_DOLLARS + rf"\$\({SHARE_FRACTION}\)")
_MEMORY = re.compile(_DOLLARS + rf"\$\({SHARE_MEMORY_MIB}\)")


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
            text = _FRACTION.sub(lambda match: match["dollars"] + fraction, word)
            if text != word:
                made.append(ReplaceArgument(field, index, allowance.rewrite(text)))
            if _MEMORY.search(word):
                why = (
                    "with allocation: dra; read the variable in the program" if is_ours else "with strategy: partition"
                )
                found.warnings.append(
                    f"{quoted(slot.name, 30)}: $({SHARE_MEMORY_MIB}) stays as it is in an argument, {why}"
                )
    return tuple(made)
