"""Structs that several threads read first at the same moment."""

import subprocess
import sys

import pytest

# msgspec evaluates annotations while it looks up types, so another thread has its turn in the midst of that.
_STRUCTS = """
import time
from pathlib import Path
from threading import Thread
import msgspec

def slowly():
    time.sleep(0.3)
    return str

class Inner(msgspec.Struct):
    text: "slowly()"

class Outer(msgspec.Struct):
    inner: Inner

def read():
    assert READ(Outer).inner.text == "a"

CONTENT = b'{"inner": {"text": "a"}}'
"""
_THREADS = """
threads = [Thread(target=read) for _ in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""
_BY = {
    "decoder": "from program.structs import decoder\nREAD = lambda kind: decoder(kind).decode(CONTENT)",
    "answers of API servers": "from console.api_server import decoded\nREAD = lambda kind: decoded(kind, CONTENT)",
    "files of the node": """
import tempfile
from plugin.state_files import read_json
PATH = Path(tempfile.mkdtemp()) / "state"
PATH.write_bytes(CONTENT)
READ = lambda kind: read_json(PATH, kind)
""",
}


@pytest.mark.parametrize("by", _BY)
def test_a_struct_that_threads_read_at_once_for_the_first_time_is_read(by: str) -> None:
    script = "\n".join([_STRUCTS, _BY[by], _THREADS])
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
