"""Every log line is one JSON object on stderr: time, level, message, and the fields in `extra`."""

import logging
from datetime import UTC, datetime

import msgspec

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record and the fields given in `extra` as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write *record*; an exception becomes the field `error`, on the same line."""
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **fields,
        }
        return msgspec.json.encode(line, enc_hook=str).decode()


def start_logging() -> None:
    """Send the plugin's log to stderr; for the entry point."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
