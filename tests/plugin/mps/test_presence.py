import subprocess
import sys
from pathlib import Path

import pytest

from plugin.errors import MpsError
from plugin.mps.state import LOCK_FILE, MpsGpu, MpsState, PublishedMpsFaults, alone, has_ended, write_state
from tests.plugin.mps.isolated import ROOT

HOLD = """
import sys
from pathlib import Path
from plugin.mps.state import alone
with alone(Path(sys.argv[1])):
    print(flush=True)
    input()
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Give a process that holds the node."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.communicate()


def test_one_that_was_killed_is_known_to_have_ended_at_once(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert not has_ended(tmp_path)
    end(holder)
    assert has_ended(tmp_path)


def test_asking_takes_nothing_from_whoever_comes_next(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(MpsError, match="another gpu-share mps runs"), alone(tmp_path):
        pass
    assert not has_ended(tmp_path)
    end(holder)
    with alone(tmp_path):
        assert not has_ended(tmp_path)
    assert has_ended(tmp_path)


def test_where_there_never_was_one_nothing_has_ended(tmp_path: Path) -> None:
    assert not has_ended(tmp_path)
    assert not has_ended(tmp_path / "nowhere")


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "other")
    assert not has_ended(tmp_path)
    with pytest.raises(MpsError, match="not a directory that can be written to"), alone(tmp_path):
        pass


def test_what_a_supervisor_said_last_is_worth_nothing_once_it_has_ended(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    gpu = MpsGpu(state="ready", since="2026-01-01T00:00:00+00:00", checked_seconds=1000.0)
    write_state(tmp_path, MpsState(boot_id="boot", gpus={"GPU-0": gpu}))
    faults = PublishedMpsFaults(tmp_path, boot_id="boot", clock=lambda: 1001.0)
    assert faults(["GPU-0"]) == {}
    end(holder)
    assert "no longer runs" in faults(["GPU-0"])["GPU-0"]
