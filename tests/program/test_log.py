"""The log of all programs: one JSON object per line on stderr, whatever is logged and wherever it goes."""

import json
import logging
from pathlib import Path

import pytest

from program import log as logs


def test_a_traceback_is_a_field_of_a_line() -> None:
    with pytest.raises(ValueError, match="first") as caught:
        int("first\nsecond")
    record = logging.LogRecord("any", logging.ERROR, "", 0, "it %s", ("failed",), caught._excinfo)
    record.count = Path("/of/no/JSON/type")
    (line,) = [json.loads(text) for text in logs.line_of(record).splitlines()]
    assert (line["level"], line["message"], line["count"]) == ("error", "it failed", "/of/no/JSON/type")
    assert line["traceback"].endswith("'first\\nsecond'")


def test_what_is_no_text_is_a_line_all_the_same() -> None:
    record = logging.LogRecord("any", logging.INFO, "", 0, "it went", (), None)
    record.file = "half a character: \udce9"
    assert "udce9" in json.loads(logs.line_of(record))["file"]
