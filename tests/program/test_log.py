"""The log of all programs: one JSON object per line, whatever is logged and wherever it goes."""

import json
import logging
import os
from pathlib import Path

import pytest

from program import log as logs


def test_a_traceback_is_a_field_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(logs, "STDERR", writing)
    with pytest.raises(ValueError, match="first") as caught:
        int("first\nsecond")
    record = logging.LogRecord("any", logging.ERROR, "", 0, "it %s", ("failed",), caught._excinfo)
    record.count = Path("/of/no/JSON/type")
    logs.JsonHandler().emit(record)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        (line,) = [json.loads(text) for text in pipe.read().splitlines()]
    assert (line["level"], line["message"], line["count"]) == ("error", "it failed", "/of/no/JSON/type")
    assert line["traceback"].endswith("'first\\nsecond'")


def test_a_line_that_cannot_be_written_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(logs, "STDERR", writing)
    try:
        logs.write_event("review", {"uid": "1"})
        logs.JsonHandler().emit(logging.LogRecord("any", logging.INFO, "", 0, "it went", (), None))
    finally:
        os.close(writing)
