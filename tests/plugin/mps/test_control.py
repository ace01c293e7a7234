import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from plugin.errors import ControlError, NotAskedError
from plugin.mps.control import Control
from tests.plugin.mps.conftest import names
from tests.plugin.waiting import wait_until


def program(root: Path, text: str) -> str:
    path = root / "control"
    path.write_text(f"#!{sys.executable} -ISs\n{text}\n")
    path.chmod(0o755)
    return str(path)


def control(root: Path, text: str, *, timeout_seconds: float = 5.0) -> Control:
    return asking(program(root, text), timeout_seconds=timeout_seconds)


def asking(program: str, *, timeout_seconds: float, patience_seconds: float = 60.0) -> Control:
    environment = {"CUDA_MPS_PIPE_DIRECTORY": "/p"}
    return Control(program, environment, timeout_seconds=timeout_seconds, patience_seconds=patience_seconds)


def test_a_command_is_sent_as_a_line_and_the_answer_is_what_the_program_writes(root: Path) -> None:
    told = control(root, "import sys; print('got', repr(sys.stdin.read())); print('a remark', file=sys.stderr)")
    assert told.ask("get_server_list") == "got 'get_server_list\\n'\n"


def test_the_program_has_no_environment_but_what_it_needs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "7")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib/somewhere")
    answer = control(root, "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))").ask("x")
    assert answer == "['CUDA_MPS_PIPE_DIRECTORY', 'LD_LIBRARY_PATH', 'PATH']\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import sys; sys.exit('no daemon\\nhere')", "quit: failed with 1: 'no daemon here'"),
        ("import os; os.kill(os.getpid(), 9)", "control: cannot be run: it was ended by signal 9: nothing"),
        ("import time; time.sleep(600)", "quit: no answer within 0.2 s"),
        ("import os\nwhile True: os.write(1, b'x' * 4096)", "quit: failed with 1: "),
    ],
    ids=["fails", "dies", "hangs", "floods"],
)
def test_what_is_no_answer_says_so_in_one_short_line(root: Path, text: str, sentence: str) -> None:
    seconds = 0.2 if "sleep" in text else 5.0
    with pytest.raises(ControlError) as raised:
        control(root, text, timeout_seconds=seconds).ask("quit")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "end", ["os._exit(127)", "os._exit(126)", "os.abort()", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)"]
)
def test_a_program_that_ends_before_it_asks_says_nothing_of_the_daemon(root: Path, end: str) -> None:
    with pytest.raises(NotAskedError, match=r"cannot be run: .*: 'no memory'$"):
        control(root, f"import os; os.write(2, b'no memory'); {end}").ask("get_server_list")


def test_a_signal_that_a_daemon_can_cause_is_no_answer_of_it(root: Path) -> None:
    with pytest.raises(ControlError, match="failed with -14") as raised:
        control(root, "import os; os.kill(os.getpid(), 14)").ask("get_server_list")
    assert not isinstance(raised.value, NotAskedError)


def test_with_patience_questions_have_longer_together_and_end_with_it(root: Path) -> None:
    late = program(root, "import time; time.sleep(0.6); print('late')")
    asked = asking(late, timeout_seconds=0.2, patience_seconds=0.2)
    with pytest.raises(ControlError):
        asked.ask("x")
    with asked.patient(30, lambda: True):
        assert asked.ask("x") == asked.ask("x") == "late\n"
    with asked.patient(0.9, lambda: True):  # for each of them
        assert asked.ask("x") == asked.ask("x") == "late\n"
    with asked.patient(0.3, lambda: True), pytest.raises(ControlError, match=r"no answer within 0\.3 s"):
        asked.ask("x")
    with asked.patient(30, lambda: False), pytest.raises(ControlError):
        asked.ask("x")
    with pytest.raises(ControlError):
        asked.ask("x")
    asked.give_up()


def test_a_program_that_hangs_is_killed_with_what_it_started(root: Path) -> None:
    child = root / "child"
    text = f"import os, time\nif not os.fork(): open({str(child)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    with pytest.raises(ControlError):
        control(root, text, timeout_seconds=1.5).ask("quit")
    pid = int(child.read_text())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


def test_a_program_that_is_not_there_is_named(root: Path) -> None:
    missing = asking(str(root / "missing"), timeout_seconds=1)
    with pytest.raises(ControlError, match=r"missing: cannot be run: No such file or directory"):
        missing.start([], timeout_seconds=1)


def test_a_start_does_not_wait_for_a_daemon_that_keeps_its_output_open(root: Path) -> None:
    pid_file = root / "pid"
    text = (
        "import os, signal, sys\nif os.fork(): sys.exit()\n"
        f"open({str(pid_file)!r}, 'w').write(str(os.getpid()) + ' ' + ' '.join(sys.argv[1:]))\nsignal.pause()"
    )
    control(root, text).start(["-M"], timeout_seconds=5)
    wait_until(lambda: pid_file.exists() and pid_file.read_text().endswith("-M"))
    pid, *flags = pid_file.read_text().split()
    os.kill(int(pid), signal.SIGKILL)
    assert flags == ["-d", "-M"]


def test_no_file_stays_open(root: Path) -> None:
    before = len(names(Path("/proc/self/fd")))
    asked = control(root, "print(1)")
    for _ in range(3):
        asked.ask("x")
    assert len(names(Path("/proc/self/fd"))) == before


@pytest.mark.parametrize("left", [0, 1, 2])
def test_where_no_more_files_can_be_opened_the_daemon_is_not_asked_and_no_file_stays_open(
    root: Path, left: int
) -> None:
    before = names(Path("/proc/self/fd"))
    asked = control(root, "print(1)")
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(free := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + left, usual[1]))
    try:
        with pytest.raises(NotAskedError, match="cannot be run: Too many open files"):
            asked.ask("x")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert names(Path("/proc/self/fd")) == before
