"""Lines that someone reads, that nobody reads, and that cannot be written: none of them holds up who wrote them."""

import fcntl
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from program.line_writer import MOST_QUEUED, LineWriter
from tests.plugin.waiting import wait_until

LINE = b'{"message": "%07d"}\n'


def notice(count: int, reason: str) -> bytes:
    return f"lost {count}: {reason}\n".encode()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that takes 4 KiB; descriptors for reading and for writing."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    yield reading, writing
    for descriptor in (reading, writing):
        with suppress(OSError):
            os.close(descriptor)


def read_lines(descriptor: int, enough: Callable[[list[bytes]], bool]) -> list[bytes]:
    content = b""
    while not content.endswith(b"\n") or not enough(content.splitlines()):
        assert select.select([descriptor], [], [], 30)[0], content
        content += os.read(descriptor, 65536)
    return content.splitlines()


def lost_lines(lines: list[bytes]) -> list[int]:
    """Say how many lines were lost by each notice of that."""
    told = rb"lost (\d+): they come faster than they are read"
    return [int(found[1]) for line in lines if (found := re.fullmatch(told, line))]


def written_lines(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["message"] for line in lines if not line.startswith(b"lost")]


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_pipe_that_nobody_reads_stalls_nobody_and_says_later_how_many_lines_were_lost(
    pipe: tuple[int, int], *, is_blocking: bool
) -> None:
    reading, writing = pipe
    os.set_blocking(writing, is_blocking)
    writer = LineWriter(writing, notice=notice)
    for number in range(5 * MOST_QUEUED):
        writer.write(LINE % number)
    assert writer.lost > MOST_QUEUED
    assert not writer.flush(0.01)
    assert not writer.flush(60)  # who waited before still does, and one wait is enough
    lost = writer.lost
    lines = read_lines(reading, lambda lines: len(written_lines(lines)) == 5 * MOST_QUEUED - sum(lost_lines(lines)))
    assert sum(lost_lines(lines)) == lost  # by two notices, where some were lost before the pipe was full
    assert written_lines(lines) == sorted(written_lines(lines))
    wait_until(lambda: writer.flush(30))
    assert writer.lost == 0
    writer.write(LINE % 0)
    assert read_lines(reading, bool)[-1] == (LINE % 0).strip()


def test_lines_are_lost_and_counted_while_the_file_system_is_full(tmp_path: Path) -> None:
    full, log = os.open("/dev/full", os.O_WRONLY), os.open(tmp_path / "log", os.O_CREAT | os.O_RDWR)
    descriptor = os.dup(full)
    writer = LineWriter(descriptor, notice=notice)
    for number in range(100):
        writer.write(LINE % number)
    assert writer.flush()
    assert (writer.lost, writer.reason) == (100, "No space left on device")
    os.dup2(log, descriptor)
    writer.write(LINE % 100)
    assert writer.flush()
    assert writer.lost == 0
    assert (tmp_path / "log").read_bytes() == LINE % 100 + b"lost 100: No space left on device\n"
    for one in (full, log, descriptor):
        os.close(one)


def test_a_line_of_which_only_the_beginning_could_be_written_is_completed_before_the_next(tmp_path: Path) -> None:
    program = """
import os, resource, signal, sys
from program.line_writer import LineWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
writer = LineWriter(1, notice=lambda count, reason: f"lost {count}: {reason}\\n".encode())
resource.setrlimit(resource.RLIMIT_FSIZE, (25, hard))
for number in range(3):
    writer.write(b"line number %d\\n" % number)
assert writer.flush()
assert writer.lost == 1, writer.lost
for number in range(3):
    writer.write(b"lost number %d\\n" % number)
assert writer.flush()
assert writer.lost == 4, writer.lost
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.write(b"the last one\\n")
assert writer.flush()
"""
    with (tmp_path / "log").open("w+b") as file:
        ended = subprocess.run([sys.executable, "-c", program], stdout=file, stderr=subprocess.PIPE, check=False)
        assert (ended.returncode, ended.stderr) == (0, b"")
        file.seek(0)
        lines = file.read().decode().splitlines()
    assert lines == ["line number 0", "line number 1", "the last one", "lost 4: File too large"]


def test_a_line_that_is_longer_than_a_pipe_promises_is_one_write() -> None:
    reading, writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)  # each write is a message
    with reading, writing:
        line = b"x" * 12000 + b"\n"
        writer = LineWriter(writing.fileno(), notice=notice)
        writer.write(line)
        assert writer.flush()
        assert reading.recv(1 << 16) == line


def test_a_child_writes_its_own_lines_and_none_of_its_parents(tmp_path: Path) -> None:
    program = """
import os, sys
from program.log import start_logging, write_event
start_logging()
write_event("first", {"of": "parent"})
if child := os.fork():
    os.waitpid(child, 0)
    write_event("second", {"of": "parent"})
else:
    write_event("second", {"of": "child"})
"""
    with (tmp_path / "log").open("wb") as log:
        assert subprocess.run([sys.executable, "-c", program], stderr=log, check=False).returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted((line["of"], line["message"]) for line in lines) == [
        ("child", "second"),
        ("parent", "first"),
        ("parent", "second"),
    ]


ENDING = """
import logging, os, sys
from program.log import start_logging
start_logging()
for number in range(int(sys.argv[1])):
    logging.info("line %d", number)
"""


def test_what_is_queued_at_the_end_is_written(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", ENDING, "1000"], stderr=log, check=True)
    assert len((tmp_path / "log").read_text().splitlines()) == 1000


def test_a_process_whose_lines_nobody_reads_ends_nevertheless(pipe: tuple[int, int]) -> None:
    process = subprocess.Popen([sys.executable, "-c", ENDING, "1000"], stderr=pipe[1])
    assert process.wait(10) == 0


NO_THREAD = """
import threading
def none(_): raise RuntimeError("can't start new thread")
threading.Thread.start = none
"""


def test_what_is_queued_at_the_end_is_written_where_no_thread_can_be_had(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", NO_THREAD + ENDING, "1000"], stderr=log, check=True)
    lines = [json.loads(line)["message"] for line in (tmp_path / "log").read_text().splitlines()]
    assert lines == [f"line {number}" for number in range(1000)]


ONE_LONG_LINE = """
import logging
from program.log import start_logging
start_logging()
logging.info("x" * 100_000)
"""


AT_ONCE = """
from program.log import write_at_once
for _ in range(2):
    write_at_once("long", {"text": "x" * 4000})
"""


@pytest.mark.parametrize("is_blocking", [True, False])
@pytest.mark.parametrize("ending", [ENDING, ONE_LONG_LINE, AT_ONCE], ids=["many lines", "one line", "at once"])
def test_a_process_without_a_thread_whose_lines_nobody_reads_ends_nevertheless(
    pipe: tuple[int, int], ending: str, *, is_blocking: bool
) -> None:
    os.set_blocking(pipe[1], is_blocking)
    process = subprocess.Popen([sys.executable, "-c", NO_THREAD + ending, "1000"], stderr=pipe[1])
    try:
        assert process.wait(10) == 0
    finally:
        process.kill()


def test_a_process_without_a_thread_waits_no_longer_for_a_reader_that_goes_on_slowly(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    process = subprocess.Popen([sys.executable, "-c", NO_THREAD + ENDING, "2000"], stderr=writing)
    os.close(writing)
    pieces = 0
    while os.read(reading, 4096):
        pieces += 1
        time.sleep(0.4)
    assert process.wait(10) == 0
    assert pieces < 10  # of about 45 in all


def test_what_nobody_caught_is_one_line_of_json() -> None:
    program = """
import threading
from program.log import start_logging
class Fails:
    def __del__(self): raise KeyError("deleted")
def fail(): raise ValueError("in a thread")
start_logging()
Fails()
thread = threading.Thread(target=fail); thread.start(); thread.join()
raise RuntimeError("in main")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line["traceback"].rpartition(" ")[2] for line in lines] == ["'deleted'", "thread", "main"]
