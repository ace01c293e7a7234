"""The log: one JSON object per line on stderr with time, level, message, and the fields given as `extra`."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from program.line_writer import LineWriter

_STDERR: Final = 2
_SAID_FOR_SECONDS: Final = 24 * 60 * 60
_MOST_SAID: Final = 256

# What every record has; anything beyond was given as `extra` and is a field of the line.
_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


class JsonHandler(logging.Handler):
    """Writes a line for each record."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        _writer.write(line_of(record))

    def flush(self) -> None:
        """Wait until the lines are written, at most a second; `logging.shutdown` does so at the end of a process."""
        _writer.flush()


def start_logging(*, level: int = logging.INFO) -> None:
    """Send the lines of every logger to stderr, from *level* on, and what nobody caught; for the entry points."""
    logging.basicConfig(level=level, handlers=[JsonHandler()], force=True)
    sys.excepthook = lambda *raised: _uncaught(raised)
    for hooked, name in ((threading, "excepthook"), (sys, "unraisablehook")):
        setattr(hooked, name, lambda raised: _uncaught((raised.exc_type, raised.exc_value, raised.exc_traceback)))


def lost_lines() -> str:
    """Say that lines of this process could not be written; empty if all were, or if a later line has said so."""
    return f"log lines lost: {_writer.lost}: {_writer.reason}" if _writer.lost else ""


class WarnOnce:
    """Warns, unless the reason was logged within a day: what is tried again and again would fill the log."""

    def __init__(self, log: logging.Logger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._said_seconds: dict[str, float] = {}  # when, by reason

    def __call__(self, message: str, reason: str) -> None:
        """Log *message* with *reason*, if that is new."""
        now_seconds = self._clock()
        said_seconds = self._said_seconds.get(reason)
        if said_seconds is not None and now_seconds - said_seconds < _SAID_FOR_SECONDS:
            return
        if len(self._said_seconds) >= _MOST_SAID:  # reasons can have numbers in them, without end
            self._said_seconds.clear()
        self._said_seconds[reason] = now_seconds
        self._log.warning(message, extra={"reason": reason})


def lines_lost() -> int:
    """Count the lines that this process could not write."""
    return _writer.lost_ever


def line_of(record: logging.LogRecord) -> bytes:
    """Write *record* as one line; an exception becomes the field `traceback`, on the same line."""
    fields = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
    if record.exc_info:
        fields["traceback"] = logging.Formatter().formatException(record.exc_info)
    return _line(record.created, level=record.levelname.lower(), message=record.getMessage(), fields=fields)


def write_event(message: str, fields: dict[str, object]) -> None:
    """
    Write a line at level info, past the logging package.

    For a line of every request: it costs 4 µs here and 22 µs there.
    """
    _writer.write(_line(time.time(), level="info", message=message, fields=fields))


def write_at_once(message: str, fields: dict[str, object]) -> None:
    """Write a line at level warning, in a process that may have no thread; waits for it, at most a second."""
    say_at_once(_line(time.time(), level="warning", message=message, fields=fields))


def say_at_once(line: bytes) -> None:
    """Write a line for people after those of the log, with a thread or without; waits for it, at most a second."""
    _writer.write(line)
    _writer.flush()


def _line(seconds: float, *, level: str, message: str, fields: dict[str, object]) -> bytes:
    second = int(seconds)
    moment = f"{_text_of(second)}.{int((seconds - second) * 1000):03d}Z"
    line = {"time": moment, "level": level, "message": message} | fields
    try:
        return _encode(line) + b"\n"
    except (TypeError, ValueError):  # half a character in a file's name, for instance
        return _encode({str(name): ascii(value) for name, value in line.items()}) + b"\n"


@lru_cache(maxsize=1)  # the lines of one second follow each other
def _text_of(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).replace(tzinfo=None).isoformat()


def _lost(count: int, reason: str) -> bytes:
    return _line(time.time(), level="warning", message="log lines lost", fields={"lines": count, "reason": reason})


def _uncaught(raised: Any) -> None:
    # Threads that Python has ended with itself may have held a lock of the log: it would be waited for without end.
    if not issubclass(raised[0], SystemExit) and not sys.is_finalizing():
        logging.getLogger(__name__).error("uncaught exception", exc_info=raised)


_writer = LineWriter(_STDERR, notice=_lost)
os.register_at_fork(after_in_child=_writer.reset)
