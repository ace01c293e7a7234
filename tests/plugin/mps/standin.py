"""A nvidia-cuda-mps-control of our own, which can be told to fail in every way that matters."""

import atexit
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import Any

from plugin.mps.processes import Holder, holders
from plugin.state_files import write_atomically
from tests.plugin.nvml_library import compiler

# The daemon, which holds real sockets. What it does is read from the file `behaviour` at every step; what it was asked
# goes to the file `journal`.
_DAEMON = """\
#!{python} -ISs
import json, os, signal, socket, sys, time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PIPE = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "")
GPU = os.environ.get("CUDA_VISIBLE_DEVICES", "")

def behaviour():
    with open(os.path.join(HERE, "behaviour")) as file:
        return json.load(file)

def note(**fields):
    with open(os.path.join(HERE, "journal"), "a") as file:
        file.write(json.dumps(dict(gpu=GPU, **fields)) + "\\n")

def listen(name):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.join(PIPE, name))
    listening.listen(64)
    return listening

def clean():
    for name in os.listdir(PIPE):
        os.unlink(os.path.join(PIPE, name))

started = {{}}  # servers: by PID, the end of a pipe that each waits for

def start_server():
    waited, held = os.pipe()
    until, executed = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(waited, 0)
        os.execve("/bin/sh", ["sh", "-c", "read end"], {{}})
    os.close(waited)
    os.close(executed)
    os.read(until, 1)  # before, it would be taken for one more daemon
    os.close(until)
    started[str(pid)] = held

def servers(told):
    for pid in list(started):
        if os.waitpid(int(pid), os.WNOHANG)[0]:
            os.close(started.pop(pid))
    return told.get("servers", dict.fromkeys(started, told.get("status", "ACTIVE")))

def answer(words, limits):
    verb, rest = words[0], words[1:]
    told = behaviour()
    if verb == "start_server":
        if not told.get("no_server") and not servers(told):
            start_server()
        return ""
    if verb == "get_server_list":
        return "".join(pid + "\\n" for pid in servers(told))
    if verb == "get_server_status":
        return servers(told).get(rest[0], "no such server") + "\\n"
    what = verb[4:].removeprefix("default_")
    value = rest.pop() if verb.startswith("set_") else None
    server = rest[0] if not verb[4:].startswith("default_") else ""
    if what.startswith("device") and rest[-1] != "0":
        return ""  # a UUID, as drivers have it, or a GPU that this daemon does not see
    if value is not None:
        limits[what, server] = value
        return ""
    value = limits.get((what, server), limits.get((what, ""), "100" if what.startswith("active") else "0"))
    if what.startswith("active"):
        return value + ".0\\n"
    mib = int(value.rstrip("M"))
    return (str(mib // 1024) + "G" if mib >= 1024 else value) + "\\n"

def serve(listening):
    held, limits = [], {{}}
    while True:
        connection, _ = listening.accept()
        words = connection.recv(4096).decode().split()  # for as long as it takes, as NVIDIA's does
        if not words:
            connection.close()
            continue
        told = behaviour()
        note(command=" ".join(words))
        if words[0] in told.get("hang", []):
            held.append(connection)
            continue
        time.sleep(told.get("slow", 0))
        if words[0] in told.get("die", []):
            os._exit(1)
        if words[0] == "quit":
            if "quit" not in told.get("without_events", []):
                if not told.get("litter"):
                    clean()
                os._exit(0)
            text = ""
        elif told.get("flood"):
            text = "1\\n" * (1 << 20)
        else:
            text = told.get("lie", {{}}).get(words[0]) or answer(words, limits)
        try:
            connection.sendall(text.encode())
        except OSError:
            pass
        connection.close()

def daemon():
    told = behaviour()
    start = told.get("start", {{}}).get(GPU) or told.get("start", {{}}).get("*")
    if start == "hang":
        time.sleep(600)
    if start:
        sys.exit(start)
    if not told.get("late"):
        control, _ = listen("control"), listen("control_privileged")
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        os.read(ready, 1)
        time.sleep(600 if told.get("mute") else 0)
        os._exit(0)
    os.setsid()
    if "SIGTERM" in told.get("without_events", []):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork():
        os._exit(0)
    os.mkfifo(os.path.join(PIPE, "log"))
    with open(os.path.join(PIPE, "nvidia-cuda-mps-control.pid"), "w") as file:
        file.write(str(os.getpid()))
    with open(os.path.join(os.environ["CUDA_MPS_LOG_DIRECTORY"], "control.log"), "a") as file:
        file.write("started\\n")
    if told.get("orphan") and not os.fork():
        os.close(tell)
        os.execv(os.path.join(HERE, "nvidia-cuda-mps-server"), ["nvidia-cuda-mps-server"])
    umask = os.umask(0)
    os.umask(umask)
    blocked = [number.name for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])]
    note(start=sys.argv[1:], environment=dict(os.environ), umask=umask, pid=os.getpid(), blocked=blocked)
    os.close(tell)
    if told.get("late"):
        time.sleep(told["late"])
        control = listen("control")
    serve(control)

daemon()
"""
_SERVER = """\
#!{python}
import signal
signal.pause()
"""


@functools.cache
def _client() -> Path:
    """Build what is started for each command, once."""
    directory = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))  # where the tests' own directories are
    atexit.register(shutil.rmtree, directory)
    source = Path(__file__).with_name("standin_client.c")
    subprocess.run([compiler(), "-O", "-Wall", "-Werror", "-o", directory / "client", source], check=True)
    return directory / "client"


class StandIn:
    """The program, what it is told, and what is left of it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self.program = directory / "nvidia-cuda-mps-control"
        self.program.hardlink_to(_client())
        (directory / "daemon").mkdir()
        self.daemon = directory / "daemon" / self.program.name
        for path, text in ((self.daemon, _DAEMON), (directory / "nvidia-cuda-mps-server", _SERVER)):
            path.write_text(text.format(python=sys.executable))
            path.chmod(0o755)
        self.behave()

    def behave(self, **behaviour: Any) -> None:
        """Do from now on what the keywords say, and otherwise what is right."""
        write_atomically(self._directory / "behaviour", json.dumps(behaviour).encode())

    def begins_with(self, lines: str) -> None:
        """Do in the program, at each command, what *lines* of Python say, and then go on."""
        client = self.program.with_name("client")
        client.hardlink_to(_client())
        changed = self.program.with_name("changed")  # where nobody runs it while it is written
        changed.write_text(
            f"#!{sys.executable} -ISs\nimport os, sys\nif '-d' not in sys.argv:\n{indent(lines, '    ')}\n"
            f"os.execv('{client}', sys.argv)\n"
        )
        changed.chmod(0o755)
        changed.replace(self.program)

    def starts(self) -> list[dict[str, Any]]:
        return [entry for entry in self._journal() if "start" in entry]

    def commands(self, *, gpu: str = "") -> list[str]:
        return [entry["command"] for entry in self._journal() if "command" in entry and entry["gpu"].startswith(gpu)]

    def forget(self) -> None:
        (self._directory / "journal").unlink(missing_ok=True)

    def _journal(self) -> list[dict[str, Any]]:
        try:
            text = (self._directory / "journal").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def alive(below: Path) -> Iterator[Holder]:
    return (one for one in holders() if Path(one.directory).is_relative_to(below))


def kill_all(below: Path) -> None:
    """End what a failed test left running."""
    for one in alive(below):
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
