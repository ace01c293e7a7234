import errno
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plugin.errors import AlreadyRunsError, StateDirectoryError
from plugin.mps.state import MpsGpu, MpsState, PublishedMpsFaults, write_state
from plugin.presence import alone, lives, lock_file
from tests.plugin.plugin_process import ROOT

HOLD = """
import sys
from pathlib import Path
from plugin.presence import alone
with alone(Path(sys.argv[1]), "mps"):
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
    assert lives(tmp_path, "mps")
    end(holder)
    assert lives(tmp_path, "mps") is False


def test_asking_takes_nothing_from_whoever_comes_next(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(AlreadyRunsError, match="another gpu-share mps runs"), alone(tmp_path, "mps"):
        pass
    assert lives(tmp_path, "mps")
    end(holder)
    with alone(tmp_path, "mps"):
        assert lives(tmp_path, "mps")
    assert lives(tmp_path, "mps") is False


def test_each_program_has_a_lock_of_its_own(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with alone(tmp_path, "plugin"):
        assert lives(tmp_path, "plugin")
    assert lives(tmp_path, "mps")
    end(holder)


def test_what_an_earlier_one_published_is_made_invalid_before_anybody_sees_the_next(tmp_path: Path) -> None:
    seen: list[bool | None] = []
    with alone(tmp_path, "mps"):
        pass
    with alone(tmp_path, "mps", before_seen=lambda: seen.append(lives(tmp_path, "mps"))):
        seen.append(lives(tmp_path, "mps"))
    assert seen == [False, True]


def test_one_that_comes_second_makes_nothing_invalid(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    made_invalid: list[None] = []
    with pytest.raises(AlreadyRunsError), alone(tmp_path, "mps", before_seen=lambda: made_invalid.append(None)):
        pass
    assert made_invalid == []
    end(holder)


def test_one_that_cannot_make_it_invalid_does_not_run(tmp_path: Path) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sentence = "what was published there cannot be replaced: No space left on device"
    with pytest.raises(StateDirectoryError, match=sentence), alone(tmp_path, "mps", before_seen=full):
        pass
    assert lives(tmp_path, "mps") is False


def test_where_there_never_was_one_nobody_can_tell(tmp_path: Path) -> None:
    assert lives(tmp_path, "mps") is None
    assert lives(tmp_path / "nowhere", "mps") is None


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    lock_file(tmp_path, "mps").symlink_to(tmp_path / "other")
    assert lives(tmp_path, "mps") is None
    with pytest.raises(StateDirectoryError, match="not a directory that can be written to"), alone(tmp_path, "mps"):
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


@pytest.mark.parametrize("removed", ["mps.lock", "."])
def test_one_whose_file_is_removed_is_seen_again_and_still_the_only_one(tmp_path: Path, removed: str) -> None:
    state_dir = tmp_path / "run/gpu-share"
    with alone(state_dir, "mps") as presence:
        path = state_dir / removed
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        presence.look()
        assert lives(state_dir, "mps")
        with pytest.raises(AlreadyRunsError), alone(state_dir, "mps"):
            pass
    assert lives(state_dir, "mps") is False


def test_one_that_another_has_replaced_meanwhile_says_so_once_until_that_has_ended(
    tmp_path: Path, holder: subprocess.Popen[str], caplog: pytest.LogCaptureFixture
) -> None:
    lock_file(tmp_path, "mps").rename(tmp_path / "of the other")
    with alone(tmp_path, "mps") as presence:
        (tmp_path / "of the other").rename(lock_file(tmp_path, "mps"))
        presence.look()
        presence.look()
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert "another gpu-share mps has started on this node" in vars(caplog.records[0])["reason"]
        end(holder)
        presence.look()
        assert lives(tmp_path, "mps")


def test_one_whose_directory_cannot_be_made_again_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state_dir = tmp_path / "state"
    with alone(state_dir, "mps") as presence:
        shutil.rmtree(state_dir)
        state_dir.touch()
        presence.look()
        presence.look()
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        state_dir.unlink()
        presence.look()
        assert lives(state_dir, "mps")
    presence.look()  # a thread that ends later
    assert lives(state_dir, "mps") is False
