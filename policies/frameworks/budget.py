"""What a framework's memory setting should be, and whether a user's own value is within the share."""

from decimal import Decimal, InvalidOperation

import msgspec

from policies.contract import MILLI_PER_GPU, MPS, GrantStrategy
from policies.frameworks.framework import Memory, Spelling
from policies.share import milli_text

_LONGEST_NUMBER = 32  # characters
_LARGEST_NUMBER = 10_000  # far above any setting; beyond, arithmetic could overflow
_PART_OF_FREE = "0.9"  # what programs that size themselves by the free memory take of it, by and large


class Budget(msgspec.Struct, frozen=True, gc=False):
    """How much memory one container's framework may take, in thousandths of one GPU."""

    share: int  # what a user's own value may reach
    target: int  # what is set: the share less the headroom
    strategy: GrantStrategy
    granted: int = 0  # what the node holds the container to


class Wanted:
    """One framework's memory setting under one budget."""

    def __init__(self, memory: Memory, budget: Budget) -> None:
        """Do the arithmetic once."""
        self.memory = memory
        follows_limit = memory.of == "free" and budget.strategy == MPS
        part = MILLI_PER_GPU if memory.of == "total" else _milli_of_free(memory)
        # Under MPS the free memory is the share itself: taking the share of it would take it twice.
        self._allowed = MILLI_PER_GPU if follows_limit else budget.share
        # Never zero, which means "all of it" to some frameworks.
        self.milli = part if follows_limit else max(budget.target * part // MILLI_PER_GPU, 1)
        # A whole GPU needs no fraction, and 1 would be wrong: vLLM does not start when not all of it is free.
        self.is_needed = budget.share < MILLI_PER_GPU and not (follows_limit and memory.of_free is None)

    def text(self, spelling: Spelling) -> str:
        """Write the value as *spelling* wants it."""
        match spelling.kind:
            case "fraction":
                return spelling.write(milli_text(self.milli))
            case "percent":
                return spelling.write(milli_text(self.milli * 100))
            case _:
                return spelling.write(str(-(-(MILLI_PER_GPU - self.milli) // 10)))

    def fits(self, spelling: Spelling, number: str) -> bool:
        """Whether a user's *number* is within the share. What cannot be read as a number is not."""
        value = _decimal(number)
        if value is None:
            return False
        match spelling.kind:
            case "fraction":
                return value * MILLI_PER_GPU <= self._allowed
            case "percent":
                return value * 10 <= self._allowed
            case _:  # a whole number, of which MXNet reads the digits before anything else
                return number.strip().isdigit() and (100 - value) * 10 <= self._allowed

    def may_be_told(self, spelling: Spelling) -> bool:
        """Whether the setting may be what the device plugin tells the container: the granted part of the GPU."""
        return spelling.kind == "fraction" and self.memory.of == "total"


def _milli_of_free(memory: Memory) -> int:
    return int(Decimal(memory.of_free or _PART_OF_FREE) * MILLI_PER_GPU)


def _decimal(text: str) -> Decimal | None:
    if not text.isascii() or len(text) > _LONGEST_NUMBER or "_" in text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and 0 <= value <= _LARGEST_NUMBER else None
