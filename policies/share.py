"""The share of a GPU: its grammar and its arithmetic, exact in whole thousandths."""

import re
from decimal import Decimal

import msgspec

from policies.contract import MILLI_PER_GPU
from policies.errors import ShareError

_GRAMMAR = re.compile(r"(?P<whole>0|[1-9][0-9]*)(?:\.(?P<places>[0-9]{1,3}))?(?P<percent>%)?", re.ASCII)
_LONGEST = 24  # characters; far above any node's number of GPUs, far below what would cost time


class Share(msgspec.Struct, frozen=True, order=True):
    """A part of one GPU, or a number of whole GPUs."""

    milli: int  # thousandths of one GPU

    @classmethod
    def parse(cls, text: str) -> "Share":
        """
        Read what a user wrote: `0.2`, `20%`, `12.5%`, `1`, `2`.

        Raises:
            ShareError: If *text* is none of these, is zero, or is above one GPU and not whole.
        """
        share = cls(_milli(text))
        if share.milli == 0:
            raise ShareError(text, "it is zero")
        if share.milli > MILLI_PER_GPU and share.milli % MILLI_PER_GPU:
            raise ShareError(text, "above 1 it must be a whole number of GPUs")
        return share

    @property
    def is_whole(self) -> bool:
        """Whether this is a number of whole GPUs."""
        return self.milli % MILLI_PER_GPU == 0

    def vgpus(self, vgpus_per_gpu: int) -> int:
        """Count the vGPUs that hold this share, rounded up: never less than was asked."""
        return -(-self.milli * vgpus_per_gpu // MILLI_PER_GPU)

    def is_exact(self, vgpus_per_gpu: int) -> bool:
        """Whether this share is a whole number of vGPUs."""
        return self.milli * vgpus_per_gpu % MILLI_PER_GPU == 0

    def __str__(self) -> str:
        return milli_text(self.milli)


def parse_headroom(text: str) -> int:
    """
    Read a part of a GPU that may be zero, below one: `0`, `0.02`, `2%`.

    Returns:
        Thousandths of one GPU, 0 to 999.

    Raises:
        ShareError: If *text* is not such a number.
    """
    milli = _milli(text)
    if milli >= MILLI_PER_GPU:
        raise ShareError(text, "it must be below 1")
    return milli


def milli_text(milli: int) -> str:
    """Write thousandths as the shortest decimal: 200 is `0.2`, 1000 is `1`."""
    whole, places = divmod(milli, MILLI_PER_GPU)
    return f"{whole}.{places:03d}".rstrip("0") if places else str(whole)


def _milli(text: str) -> int:
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ShareError(text, 'write it like "0.2", "20%" or "1"')
    number = Decimal(text.removesuffix("%")) * (10 if match["percent"] else MILLI_PER_GPU)
    if number != int(number):
        raise ShareError(text, "it is finer than a thousandth of a GPU")
    return int(number)
