"""The log of all programs: one JSON object per line on stderr, whatever is logged and wherever it goes."""

import json
import logging
import subprocess
import sys
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


ENDS_WITH_THE_LOG_HELD = """
import atexit, gc, threading
taken, take = threading.Event(), threading.Event()
atexit.register(lambda: (take.set(), taken.wait()))  # after what logging does at the end
import logging
from program.log import start_logging

start_logging()

def hold():
    take.wait()
    logging.getLogger().handlers[0].acquire()
    taken.set()
    threading.Event().wait()

class Fails:
    def __del__(self):
        raise OSError("left open")

threading.Thread(target=hold, daemon=True).start()
gc.disable()
left = Fails()
left.itself = left
del left  # found at the very end
"""


def test_a_process_ends_whoever_held_its_log_then() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDS_WITH_THE_LOG_HELD], timeout=20, check=False)
    assert ended.returncode == 0


def test_a_reason_is_logged_once_a_day_and_any_number_of_them_takes_no_more_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_seconds = 0.0
    own = logging.getLogger("once")
    own.propagate = False  # to what others have put on the root: these lines are for nobody
    own.addHandler(caplog.handler)
    warn = logs.WarnOnce(own, clock=lambda: now_seconds)
    for at_seconds in (0, 1, 24 * 3600 - 1, 24 * 3600, 24 * 3600 + 1):
        now_seconds = at_seconds
        warn("it failed", "the same")
    assert len(caplog.records) == 2
    for number in range(1_000):
        warn("it failed", f"reason {number}")
        warn("it failed", f"reason {number}")
    assert len(caplog.records) == 1_002
    assert len(warn._said_seconds) < 300
