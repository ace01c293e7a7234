"""Standard output that is full, closed, or cannot show every character, and standard input that is closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
_EXAMPLE = "policies/examples/1-tensorflow-serving.yaml"
_FULL = "gpu-share: standard output: No space left on device\n"
_OTHER = "from program.output import checked_output\nwith checked_output(): open('/dev/full', 'wb', 0).write(b'x')"
_SIGN = "from program.output import checked_output\nwith checked_output(): print('✓')"
_BUFFERED = """\
import sys
from program.output import OutputError, checked_output
try:
    with checked_output():
        sys.stdout.write("a line")
        sys.exit(0)
except OutputError as error:
    sys.exit(error.reason)
"""


def run(words: list[str], *, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *words]
    settings = {**os.environ, "PYTHONUNBUFFERED": "", **environment}
    return subprocess.run(command, cwd=ROOT, env=settings, stdout=stdout, stderr=subprocess.PIPE, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["preview", _EXAMPLE], ["policy", "schema"], ["completion", "bash"]]
)
def test_a_full_disk_is_said_in_one_line_and_is_a_failure(words: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = run(["-m", "gpu_share", *words], stdout=full.fileno(), PYTHONUNBUFFERED=unbuffered)
    assert (ran.returncode, ran.stderr.decode()) == (1, _FULL)


def test_what_is_still_in_the_buffer_at_the_end_counts_as_well() -> None:
    with Path("/dev/full").open("wb") as full:
        ran = run(["-c", _BUFFERED], stdout=full.fileno())
    assert (ran.returncode, ran.stderr.decode()) == (1, "No space left on device\n")


def test_without_a_standard_output_the_exit_code_tells() -> None:
    command = f"{sys.executable} -m gpu_share preview policies/examples/5-too-large.yaml >&-"
    ran = subprocess.run(command, shell=True, cwd=ROOT, stderr=subprocess.PIPE, check=False)  # noqa: S602 - no input
    assert (ran.returncode, ran.stderr) == (1, b"")


@pytest.mark.parametrize("words", ["preview -", "policy import -"])
def test_without_a_standard_input_one_line_says_so(words: str) -> None:
    command = f"{sys.executable} -m gpu_share {words} <&-"
    ran = subprocess.run(command, shell=True, cwd=ROOT, stderr=subprocess.PIPE, check=False)  # noqa: S602 - as above
    said = b"gpu-share: standard input is closed: name a file, or send one to standard input\n"
    assert (ran.returncode, ran.stderr) == (2, said)


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "✓\n".encode()), ("latin-1", b"\\u2713\n"), ("utf-8", "✓\n".encode())]
)
def test_a_character_that_an_encoding_lacks_is_no_traceback(encoding: str, shown: bytes) -> None:
    ran = run(["-c", _SIGN], PYTHONIOENCODING=encoding)
    assert (ran.stdout, ran.stderr) == (shown, b"")


def test_an_error_of_another_file_is_not_taken_for_one_of_the_output() -> None:
    ran = run(["-c", _OTHER])
    assert ran.stderr.endswith(b"OSError: [Errno 28] No space left on device\n")
