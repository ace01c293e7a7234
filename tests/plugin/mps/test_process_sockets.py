"""What the kernel shows of the sockets that a process has."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from plugin.mps.process_sockets import bound_to

NAMES = ("control", "control_privileged")


@pytest.mark.parametrize("renamed", [True, False])
def test_what_a_process_has_bound_is_shown_whatever_became_of_the_name(root: Path, *, renamed: bool) -> None:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other, socket.socket() as of_ip:
        one.bind(str(path := root / "control"))
        other.bind(str(root / "other"))
        of_ip.bind(("127.0.0.1", 0))
        made = path.stat().st_ino
        path.rename(root / "mine") if renamed else path.unlink()
        found = bound_to(os.getpid(), NAMES)
    assert {name: os.fstat(file).st_ino for name, file in found.items()} == {"control": made}
    os.close(found["control"])


def test_of_several_by_one_name_it_is_the_first_that_the_process_had(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as sent:
        first.bind(str(path := root / "control"))
        made = path.stat().st_ino
        path.rename(root / "mine")
        sent.bind(str(path))
        found = bound_to(os.getpid(), NAMES)
        assert sent.fileno() > first.fileno()
    assert os.fstat(found["control"]).st_ino == made
    os.close(found["control"])


def test_a_process_that_has_ended_shows_none() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
        assert bound_to(process.pid, NAMES) == {}
