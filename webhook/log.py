"""One JSON object per line on stderr, for our own lines and for gunicorn's."""

import logging
import os
import time
from datetime import UTC, datetime
from typing import Final

import msgspec
from gunicorn.glogging import Logger

STDERR: Final = 2

# What every record has; anything beyond was given as `extra` and is a field of the line.
_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


def write_event(message: str, fields: dict[str, object]) -> None:
    """
    Write a line at level info, past the logging package.

    For the line of each review: it costs 4 µs here and 22 µs there.
    """
    _write(_line(time.time(), level="info", message=message, fields=fields))


class JsonHandler(logging.Handler):
    """Writes time, level, message and the record's extra fields."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        fields = {name: value for name, value in record.__dict__.items() if name not in _OF_EVERY_RECORD}
        if record.exc_info:
            fields["traceback"] = logging.Formatter().formatException(record.exc_info)
        level = record.levelname.lower()
        _write(_line(record.created, level=level, message=record.getMessage(), fields=fields))


class GunicornLog(Logger):  # type: ignore[misc] # gunicorn is published without types
    """gunicorn's own lines, in the same form."""

    def setup(self, cfg: object) -> None:
        """Put our handler in the place of gunicorn's."""
        super().setup(cfg)
        self.error_log.handlers = [JsonHandler()]


def to_stderr() -> None:
    """Send the lines of every logger to stderr."""
    logging.basicConfig(level=logging.INFO, handlers=[JsonHandler()], force=True)


def _line(seconds: float, *, level: str, message: str, fields: dict[str, object]) -> bytes:
    head = {"time": datetime.fromtimestamp(seconds, UTC), "level": level, "message": message}
    return _encode(head | fields) + b"\n"


def _write(line: bytes) -> None:
    # One write, so that the lines of two workers on one pipe do not mix.
    os.write(STDERR, line)
