"""The share of a GPU: its grammar and its arithmetic, exact in whole thousandths."""

import re
from functools import lru_cache
from math import gcd

from policies.contract import MILLI_PER_GPU
from policies.errors import ShareError

PATTERN = r"^(0|[1-9][0-9]*)(\.[0-9]{1,3})?%?$"

_GRAMMAR = re.compile(PATTERN, re.ASCII)
_LONGEST = 24  # characters; far above any node's number of GPUs, far below what would cost time
_NOT_A_SHARE = "is not a decimal with at most three places, a percentage or a whole number"


class Share(int):
    """A part of one GPU, or a number of whole GPUs. The integer is in thousandths of one GPU."""

    @classmethod
    def parse(cls, text: str) -> "Share":
        """
        Read what a user wrote: `0.2`, `20%`, `12.5%`, `1`, `2`.

        Raises:
            ShareError: If *text* is none of these, is zero, or is above one GPU and not whole.
        """
        share = cls(_milli(text))
        if share == 0:
            raise ShareError(text, "is zero")
        if share > MILLI_PER_GPU and not share.is_whole:
            raise ShareError(text, "is above 1 and not a whole number of GPUs")
        return share

    @property
    def milli(self) -> int:
        """Thousandths of one GPU."""
        return int(self)

    @property
    def is_whole(self) -> bool:
        """Whether this is a number of whole GPUs."""
        return self % MILLI_PER_GPU == 0

    def vgpus(self, vgpus_per_gpu: int) -> int:
        """Count the vGPUs that hold this share, rounded up: never less than was asked."""
        return -(-self * vgpus_per_gpu // MILLI_PER_GPU)

    def is_exact(self, vgpus_per_gpu: int) -> bool:
        """Whether this share is a whole number of vGPUs."""
        return self * vgpus_per_gpu % MILLI_PER_GPU == 0

    def __str__(self) -> str:
        return milli_text(self)

    def __repr__(self) -> str:
        return f'Share.parse("{self}")'


class Headroom(int):
    """A part of one GPU, zero allowed, below one. The integer is in thousandths of one GPU."""

    @classmethod
    def parse(cls, text: str) -> "Headroom":
        """
        Read what a user wrote: `0`, `0.02`, `2%`.

        Raises:
            ShareError: If *text* is not such a number.
        """
        milli = _milli(text)
        if milli >= MILLI_PER_GPU:
            raise ShareError(text, "is not below 1")
        return cls(milli)

    def __str__(self) -> str:
        return milli_text(self)


def largest_whole(bound: Share, vgpus_per_gpu: int) -> int:
    """Count the most vGPUs that are not above *bound*."""
    return bound * vgpus_per_gpu // MILLI_PER_GPU


def largest_exact(bound: int, vgpus_per_gpu: int) -> int:
    """Return the most thousandths that are whole vGPUs and not above *bound*; 0 if none are."""
    step = _exact_step(vgpus_per_gpu)
    return bound // step * step


def smallest_exact(bound: int, vgpus_per_gpu: int) -> int:
    """Return the fewest thousandths that are whole vGPUs and not below *bound*."""
    step = _exact_step(vgpus_per_gpu)
    return -(-bound // step) * step


def _exact_step(vgpus_per_gpu: int) -> int:
    return MILLI_PER_GPU // gcd(MILLI_PER_GPU, vgpus_per_gpu)


@lru_cache(1024)  # the same few shares all day
def milli_text(milli: int) -> str:
    """Write thousandths as the shortest decimal: 200 is `0.2`, 1000 is `1`."""
    whole, places = divmod(milli, MILLI_PER_GPU)
    return f"{whole}.{places:03d}".rstrip("0") if places else f"{whole}"


def _milli(text: str) -> int:
    if len(text) > _LONGEST:
        raise ShareError(text, _NOT_A_SHARE)
    return _milli_of(text)


@lru_cache(1024)  # likewise; a text that is invalid is not kept
def _milli_of(text: str) -> int:
    # fullmatch, because $ would let a final newline pass.
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise ShareError(text, _NOT_A_SHARE)
    whole, places = match[1], (match[2] or ".")[1:]
    if not text.endswith("%"):
        return int(whole + places.ljust(3, "0"))
    if places[1:].strip("0"):
        raise ShareError(text, "is finer than a thousandth of a GPU")
    return int(whole + places[:1].ljust(1, "0"))
