"""Lines to a file descriptor by a thread of its own: who has a line to write never waits, whoever reads or doesn't."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import inf
from queue import Empty, SimpleQueue
from select import PIPE_BUF, POLLOUT, poll
from threading import RLock
from time import monotonic, sleep
from typing import Final

from program.threads import start_beside

MOST_QUEUED: Final = 2_000  # lines, about 1 MiB: more than these are lost while nothing can be written
FLUSH_SECONDS: Final = 1.0  # at the end of a process, for what is queued

_GATHER_SECONDS: Final = 0.02  # lines that come within this are written together
_LINE = re.compile(rb"[^\n]*\n")


class LineWriter:
    """
    Writes lines in their order, some milliseconds later.

    A line that cannot be written, or for which there is no room, is lost and counted. When writing works again, the
    line that *notice* makes, of the number and the reason, says so.
    """

    def __init__(self, descriptor: int, *, notice: Callable[[int, str], bytes]) -> None:
        self._descriptor = descriptor
        self._notice = notice
        self.reset()

    def reset(self) -> None:
        """Begin anew in a process that was forked: what is queued is the parent's to write, and so is the thread."""
        self._queue: SimpleQueue[bytes | SimpleQueue[None]] = SimpleQueue()  # of lines, and of those who wait for them
        self._lock = RLock()  # a signal's handler can log while its thread holds it
        self._is_running = False
        self._flushing: SimpleQueue[None] | None = None
        self._begun = b""  # the end of a line whose beginning is written
        self._until_seconds = inf  # on the monotonic clock: what is not taken by then is lost
        self.lost = 0  # lines, as far as no line has said so yet
        self.lost_ever = 0  # lines, in this process
        self.reason = ""  # of the last loss

    def write(self, line: bytes) -> None:
        """Take one line, which ends in a line feed, and return at once."""
        if not self._is_running:
            self._start()
        if self._queue.qsize() >= MOST_QUEUED:
            self._lose(1, "they come faster than they are read")
        else:
            self._queue.put(line)

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all lines so far are written or lost, at most so long; False if they are not."""
        if not self._is_running:
            return self._write_queued(seconds)
        if self._flushing is not None and self._flushing.empty():
            return False  # the last one who waited still would
        self._flushing = SimpleQueue()
        self._queue.put(self._flushing)
        try:
            self._flushing.get(timeout=seconds)
        except Empty:
            return False
        self._flushing = None
        return True

    def _write_queued(self, seconds: float) -> bool:
        """Write what waits for a thread that could not be had, as far as it is taken in time; the rest is lost."""
        queued: list[bytes | SimpleQueue[None]] = []
        with suppress(Empty):  # where there is a thread by now, it takes them as well
            queued.extend(self._queue.get_nowait() for _ in range(self._queue.qsize()))
        self._until_seconds = monotonic() + seconds
        for piece in _pieces(one for one in queued if isinstance(one, bytes)):
            self._write(piece)
        is_in_time = monotonic() < self._until_seconds
        self._until_seconds = inf
        return is_in_time

    def _start(self) -> None:
        with self._lock, suppress(RuntimeError):  # no more threads can be had: lines wait in the queue for one
            if not self._is_running:
                start_beside(self._run, name="log")
                self._is_running = True

    def _run(self) -> None:
        while True:
            taken = [self._queue.get()]
            sleep(_GATHER_SECONDS)
            taken += [self._queue.get() for _ in range(self._queue.qsize())]
            for piece in _pieces(one for one in taken if isinstance(one, bytes)):
                self._write(piece)
            for waiting in taken:
                if isinstance(waiting, SimpleQueue):
                    waiting.put(None)

    def _write(self, piece: bytes) -> None:
        if not self._reaches(piece):
            return
        if (lost := self.lost) and self._reaches(self._notice(lost, self.reason), is_counted=False):
            self._lose(-lost, self.reason)

    def _reaches(self, piece: bytes, *, is_counted: bool = True) -> bool:
        """Write *piece*; False if not all of it could be, and then its lines are lost."""
        piece, begun, self._begun = self._begun + piece, bool(self._begun), b""
        written = 0
        try:
            while written < len(piece):
                written += self._write_some(piece[written:])
        except OSError as error:
            in_a_line = piece[written - 1] != ord("\n") if written else begun
            lines = _LINE.findall(piece[written:])
            if in_a_line:  # it is completed before the next one, else neither could be read
                self._begun = lines.pop(0)
            if is_counted:
                self._lose(len(lines), error.strerror or str(error))
            return False
        return True

    def _write_some(self, piece: bytes) -> int:
        """Write a piece, or where time is limited as much as a pipe takes at once: it may block, as others want it."""
        waiting = poll()
        waiting.register(self._descriptor, POLLOUT)
        left_ms: float | None = None
        while True:
            if self._until_seconds < inf:
                piece, left_ms = piece[:PIPE_BUF], max(0.0, self._until_seconds - monotonic()) * 1000
                if not waiting.poll(left_ms):
                    raise TimeoutError("they were not read in time")
            try:
                return os.write(self._descriptor, piece)
            except BlockingIOError:
                waiting.poll(left_ms)

    def _lose(self, count: int, reason: str) -> None:
        with self._lock:
            self.lost += count
            self.lost_ever += max(0, count)
            self.reason = reason


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines to what a pipe takes in one piece, so that those of two processes do not mix."""
    piece = b""
    for line in lines:
        if piece and len(piece) + len(line) > PIPE_BUF:
            yield piece
            piece = b""
        piece += line
    if piece:
        yield piece
