"""Every log line is one JSON object on stderr: time, level, message, and the fields in `extra`."""

import logging
from datetime import UTC, datetime

import msgspec

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a record and the fields given in `extra` as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write *record*."""
        head = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return msgspec.json.encode(head | fields, enc_hook=str).decode()


def start_logging() -> None:
    """Send the log to stderr; for the entry point."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("certs").setLevel(logging.INFO)  # the client's own lines only when something is wrong
