"""Which directories count as removed on the node."""

import os
import shutil
from pathlib import Path

import pytest

from plugin.errors import RemovedError
from plugin.removal import end_if_removed, removed


@pytest.fixture
def behind(tmp_path: Path) -> Path:
    """Give the way to a directory that was removed, as a mount of it is one."""
    (tmp_path / "gone").mkdir()
    opened = os.open(tmp_path / "gone", os.O_RDONLY)
    (tmp_path / "gone").rmdir()
    return Path(f"/proc/self/fd/{opened}")


@pytest.mark.parametrize("below", [".", "gpu-share", "a/b"])
def test_a_removed_one_is_told_of_by_its_option_and_so_is_what_would_be_in_it(behind: Path, below: str) -> None:
    said = removed({"--state-dir": Path("/run"), "--kubelet-dir": behind / below})
    assert said.startswith(f"--kubelet-dir {behind / below}: somebody removed the directory on the node")
    with pytest.raises(RemovedError, match="a new container has the directory of the node again"):
        end_if_removed({"--kubelet-dir": behind / below})


def test_one_that_is_empty_or_absent_or_no_directory_or_was_made_anew_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "anew").mkdir()
    shutil.rmtree(tmp_path / "anew")
    (tmp_path / "anew").mkdir()
    for name in ("anew", "absent", "absent/below", "file", "file/below", "loop", "loop/below"):
        assert removed({"--kubelet-dir": tmp_path / name}) == ""
