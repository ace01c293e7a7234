"""
What the workers count, in memory that they share with the process that started them.

Each worker writes to a page of its own, by its only thread, so that a count takes no lock and is never lost: a worker
that takes the place of another goes on where that one was. A count of reviews stands behind its labels, which are
written before it. The master reads all pages and adds them up.
"""

import mmap
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from program.metrics import Histogram

Labels = tuple[str, str, str]  # decision, code, policy

# Seconds. A review takes a tenth of a millisecond; an API server waits for 3 s.
BOUNDS: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 1.0)
MOST_LABELS: Final = 2000  # of one worker; a policy for each of 1,000 namespaces has two
OTHER: Final[Labels] = ("other", "", "")  # what is beyond

_SLOT_BYTES = 8
_HEAD = 64  # slots: the number of labels, seconds, certificate, lost lines, and the buckets
_LABELS, _SUM, _EXPIRES, _LOST, _BUCKETS = 0, 1, 2, 3, 8
_ENTRY_BYTES = 512
_TEXT_BYTES = _ENTRY_BYTES - 2 * _SLOT_BYTES  # behind the count and the length of the text
_PAGE_BYTES = _HEAD * _SLOT_BYTES + (MOST_LABELS + 1) * _ENTRY_BYTES
_LENGTH = struct.Struct("Q")


class Page:
    """What one worker counts. One thread writes; others read what it has written, at most a moment old."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _PAGE_BYTES)  # shared with the processes that are forked after it
        self._integers = memoryview(self._memory).cast("Q")
        self._floats = memoryview(self._memory).cast("d")
        self._slots: dict[Labels, int] = {}
        self.lost_before = 0  # log lines of the workers that had this page

    def take(self) -> None:
        """Begin to write, in the process of a worker: go on where the last one was."""
        self._slots = dict(self._entries())
        self.lost_before = self._integers[_LOST]

    def add(self, labels: Labels, seconds: float) -> None:
        """Count a review."""
        slot = self._slots.get(labels)
        if slot is None:
            slot = self._new(labels)
        integers = self._integers
        integers[slot] += 1
        integers[_BUCKETS + bisect_left(BOUNDS, seconds)] += 1
        self._floats[_SUM] += seconds

    def tell(self, *, certificate_expires: float, lines_lost: int) -> None:
        """Say until when the certificate is valid that is served, and how many log lines this worker has lost."""
        self._floats[_EXPIRES] = certificate_expires
        self._integers[_LOST] = self.lost_before + lines_lost

    @property
    def certificate_expires(self) -> float:
        """The end of the certificate that the worker serves, in seconds since 1970; 0 if it has not said."""
        return self._floats[_EXPIRES]

    @property
    def lines_lost(self) -> int:
        """The log lines that were lost."""
        return self._integers[_LOST]

    @property
    def seconds(self) -> float:
        """The time that all reviews took."""
        return self._floats[_SUM]

    @property
    def buckets(self) -> list[int]:
        """How many reviews took at most each of the bounds and more than the one before; the last took longer."""
        return self._integers[_BUCKETS : _BUCKETS + len(BOUNDS) + 1].tolist()

    def reviews(self) -> dict[Labels, int]:
        """Count the reviews by their labels."""
        return {labels: self._integers[slot] for labels, slot in self._entries()}

    def _new(self, labels: Labels) -> int:
        count = self._integers[_LABELS]
        if count >= MOST_LABELS:
            labels = OTHER
            if (slot := self._slots.get(OTHER)) is not None:
                return slot
        text = msgspec.json.encode(labels)
        if len(text) > _TEXT_BYTES:
            return self._slots.get(OTHER) or self._new(OTHER)
        at = _HEAD * _SLOT_BYTES + count * _ENTRY_BYTES
        self._memory[at + 2 * _SLOT_BYTES : at + 2 * _SLOT_BYTES + len(text)] = text
        _LENGTH.pack_into(self._memory, at + _SLOT_BYTES, len(text))
        self._integers[_LABELS] = count + 1
        self._slots[labels] = at // _SLOT_BYTES
        return at // _SLOT_BYTES

    def _entries(self) -> Iterator[tuple[Labels, int]]:
        for number in range(min(self._integers[_LABELS], MOST_LABELS + 1)):
            at = _HEAD * _SLOT_BYTES + number * _ENTRY_BYTES
            (length,) = _LENGTH.unpack_from(self._memory, at + _SLOT_BYTES)
            text = self._memory[at + 2 * _SLOT_BYTES : at + 2 * _SLOT_BYTES + length]
            yield msgspec.json.decode(text, type=Labels), at // _SLOT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What all workers have counted."""

    reviews: dict[Labels, int]
    seconds: Histogram
    lines_lost: int
    certificate_expires: float | None  # the first of those that are served; None if no worker has said


class Pages:
    """
    Gives each worker a page, in the process that starts them.

    A page whose worker has ended is given to the next one; a new one is made when none is free, which the workers that
    are there already cannot see and need not.
    """

    def __init__(self) -> None:
        self._pages: list[Page] = []
        self._holders: dict[int, Page] = {}  # by the PID of the worker

    def keep(self, alive: set[int]) -> None:
        """Forget which pages other workers have had than those that are *alive*, by their PIDs."""
        self._holders = {pid: page for pid, page in self._holders.items() if pid in alive}

    def free(self, alive: set[int]) -> Page:
        """Find a page that none of the workers writes that are *alive*, by their PIDs."""
        self.keep(alive)
        held = {id(page) for page in self._holders.values()}
        for page in self._pages:
            if id(page) not in held:
                return page
        self._pages.append(Page())
        return self._pages[-1]

    def give(self, page: Page, pid: int) -> None:
        """Note that a worker has a page."""
        self._holders[pid] = page

    def counted(self) -> Counted:
        """Add up what all pages say, those of workers that have ended among them."""
        pages = [*self._pages]
        reviews: Counter[Labels] = Counter()
        for page in pages:
            reviews.update(page.reviews())
        counts = [sum(each) for each in zip(*(page.buckets for page in pages), strict=True)] or [0] * (len(BOUNDS) + 1)
        cumulative, buckets = 0, []
        for bound, count in zip((*BOUNDS, float("inf")), counts, strict=True):
            cumulative += count
            buckets.append((bound, cumulative))
        served = [page.certificate_expires for page in [*self._holders.values()] if page.certificate_expires]
        return Counted(
            reviews=dict(reviews),
            seconds=Histogram(tuple(buckets), sum(page.seconds for page in pages)),
            lines_lost=sum(page.lines_lost for page in pages),
            certificate_expires=min(served, default=None),
        )
