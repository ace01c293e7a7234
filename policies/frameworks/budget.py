"""What a framework's memory setting should be, and whether a user's own value is within the share."""

from decimal import Decimal, InvalidOperation
from typing import Literal

import msgspec

from policies.contract import MILLI_PER_GPU, MPS, GrantStrategy
from policies.frameworks.framework import Memory, Spelling
from policies.share import milli_text

_LONGEST_NUMBER = 32  # characters
_LARGEST_NUMBER = 10_000  # far above any setting; beyond, arithmetic could overflow
_LEAST = 1  # thousandths of a GPU: what can be written, and far above what a float or whole bytes round to nothing
_WHOLE_PERCENT = 10  # thousandths of a GPU: what a {percentLeft} of 99 leaves, since 100 counts as no limit
_SIGN_OF_PERCENT = ("", "%")
_PART_OF_FREE = "0.9"  # what programs that size themselves by the free memory take of it, by and large


Judged = Literal["within", "above", "boundless", "bytes", "unexpanded"]


class Budget(msgspec.Struct, frozen=True, gc=False):
    """How much memory one container's framework may take, in thousandths of one GPU."""

    share: int  # what a user's own value may reach
    target: int  # what is set: the share less the headroom
    strategy: GrantStrategy
    granted: int = 0  # what the node holds the container to

    @property
    def is_held(self) -> bool:
        """Whether anything but the framework itself holds the container to its share."""
        return self.strategy == MPS or self.share >= MILLI_PER_GPU


class Wanted:
    """One framework's memory setting under one budget."""

    def __init__(self, memory: Memory, budget: Budget) -> None:
        """Do the arithmetic once."""
        self.memory = memory
        self._budget = budget
        follows_limit = self._follows_limit = memory.of == "free" and budget.strategy == MPS
        part = MILLI_PER_GPU if memory.of == "total" else _milli_of_free(memory)
        # Under MPS the free memory is the share itself: taking the share of it would take it twice.
        self._allowed = MILLI_PER_GPU if follows_limit else budget.share
        # Nothing means "all of it" to some frameworks (TensorFlow, CuPy): fine where all of it is the container's.
        self._least = 0 if self._allowed >= MILLI_PER_GPU else _LEAST
        self.milli = part if follows_limit else max(budget.target * part // MILLI_PER_GPU, _LEAST)
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
                left = MILLI_PER_GPU - max(self.milli, _WHOLE_PERCENT)
                return spelling.write(str(-(-left // _WHOLE_PERCENT)))

    def verdict(self, spelling: Spelling, number: str) -> Judged:
        """Judge a user's *number*. What cannot be read as one is above the share; boundless is next to nothing."""
        milli = _milli(spelling, number)
        if milli is None:
            return _verdict_of_none(number)
        allowed = max(self._allowed, _WHOLE_PERCENT) if spelling.kind == "percentLeft" else self._allowed
        if milli > allowed:
            return "above"
        return "within" if milli >= self._least else "boundless"

    def verdict_of_other(self, spelling: Spelling, value: str) -> Judged:
        """Judge a *value* that is not written as *spelling* is: without its percent sign it is a number of bytes."""
        number = value.strip()
        if spelling.around != _SIGN_OF_PERCENT or not (number.isascii() and number.isdigit()):
            return _verdict_of_none(number)
        if not self._least:
            return "within"
        return "bytes" if number.strip("0") else "boundless"

    def verdict_of_unread(self, *, is_told: bool) -> Literal["unread", "any"]:
        """
        Judge what admission cannot tell: of what is all the container's, nothing is too much.

        *is_told*: it is what the device plugin tells the container.
        """
        if self._budget.share >= MILLI_PER_GPU:
            return "any"
        # What is told is a part of the whole GPU: of the free memory under MPS it would be taken twice.
        return "any" if self._follows_limit and not is_told else "unread"

    def takes_all(self, spelling: Spelling, number: str | None) -> bool:
        """
        Whether a user's *number* leaves nothing of the share to a framework that does not start with all of it.

        None is what the device plugin tells the container, which is all of it.
        """
        if not (self.memory.needs_headroom and self.memory.of == "total" and self._budget.is_held):
            return False  # a part of what is free is compared with nothing here
        milli = self._budget.granted if number is None else _milli(spelling, number)
        return milli is not None and milli >= self._budget.granted

    @property
    def is_held(self) -> bool:
        """Whether anything but the framework itself holds it to its share."""
        return self._budget.is_held

    @property
    def lacks_headroom(self) -> bool:
        """Whether what is set leaves nothing of the share to a framework that does not start with all of it."""
        return self.is_needed and self.memory.needs_headroom and self._budget.strategy == MPS and not self.has_headroom

    @property
    def has_headroom(self) -> bool:
        """Whether what is set leaves something of what the node holds the container to."""
        return self._budget.target < self._budget.granted

    def may_be_told(self, spelling: Spelling) -> bool:
        """Whether the setting may be what the device plugin tells the container: the granted part of the GPU."""
        return spelling.kind == "fraction" and not self._follows_limit


def _verdict_of_none(text: str) -> Judged:
    return "unexpanded" if "$(" in text else "above"


def _milli(spelling: Spelling, number: str) -> Decimal | None:
    """Read *number* in thousandths of one GPU; None if it is none."""
    value = _decimal(number)
    if value is None:
        return None
    match spelling.kind:
        case "fraction":
            return value * MILLI_PER_GPU
        case "percent":
            return value * 10
        case _:  # a whole number, of which MXNet reads the digits before anything else
            return max(100 - value, Decimal()) * 10 if number.strip().isdigit() else None


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
