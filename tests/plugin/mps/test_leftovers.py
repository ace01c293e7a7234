import mmap
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin.mps.leftovers import FileId, has_older, in_use_by, is_mounted_elsewhere, remove_older
from tests.plugin.mps.conftest import names
from tests.plugin.mps.isolated import ISOLATED, ODD_ENDS_OF_LINES, needs_mounts
from tests.plugin.waiting import wait_until

CLOCK_LAG_SECONDS = 0.02  # of the time of files


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def now_ns() -> int:
    """Give a time after that of all files made before, and before that of all made from now on."""
    time.sleep(CLOCK_LAG_SECONDS)
    now = time.time_ns()
    time.sleep(CLOCK_LAG_SECONDS)
    return now


def file_id(path: Path) -> FileId:
    return FileId(path.stat().st_dev, path.stat().st_ino)


def test_what_nobody_touched_since_is_removed_however_deep_and_what_is_newer_stays(
    tmp_path: Path, directory: int
) -> None:
    (tmp_path / "deep" / "/".join("d" * 300)).mkdir(parents=True)
    (tmp_path / "deep/d/d/file").write_text("")
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/old").write_text("")
    before = now_ns()
    (tmp_path / "shared/new").write_text("")
    (tmp_path / "new").write_text("")
    assert has_older(directory, before)
    remove_older(directory, before, ())
    assert names(tmp_path) == ["new", "shared"]
    assert names(tmp_path / "shared") == ["new", "old"]  # in a directory that somebody uses by now
    remove_older(directory, now_ns(), ())
    assert names(tmp_path) == []


def test_what_is_more_than_is_removed_at_once_goes_the_next_times(tmp_path: Path, directory: int) -> None:
    for number in range(5):
        (tmp_path / f"deep/{number}/below").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    times = 0
    while has_older(directory, now_ns()):
        remove_older(directory, now_ns(), (), most=4)
        times += 1
    assert names(tmp_path) == []
    assert times > 3


def test_what_was_written_to_since_stays_although_it_was_made_before(tmp_path: Path, directory: int) -> None:
    (tmp_path / "taken over").write_text("")
    before = now_ns()
    (tmp_path / "taken over").write_text("by another")
    os.utime(tmp_path / "taken over", (0, 0))
    assert not has_older(directory, before)
    remove_older(directory, before, ())
    assert names(tmp_path) == ["taken over"]


def test_files_that_a_process_has_open_or_mapped_stay(tmp_path: Path, directory: int) -> None:
    for name in ("open", "mapped", "left"):
        (tmp_path / name).write_text("content")
    with (tmp_path / "open").open() as opened, (tmp_path / "mapped").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        file.close()
        kept = in_use_by([os.getpid(), 1 << 30])  # and one that has ended
        assert {file_id(tmp_path / name) for name in ("open", "mapped")} <= kept
        remove_older(directory, now_ns(), kept)
        assert not has_older(directory, now_ns(), kept)
        assert not opened.closed
        mapped.close()
    assert names(tmp_path) == ["mapped", "open"]


@needs_mounts
def test_a_file_system_is_known_to_be_at_a_path_of_another_mount_namespace(tmp_path: Path) -> None:
    script = f"mount -t tmpfs gpu-share {tmp_path} && stat -c %d {tmp_path} && read line"
    container = subprocess.Popen(
        [*ISOLATED, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert container.stdout is not None
    assert container.stdin is not None
    device = int(container.stdout.readline())
    assert is_mounted_elsewhere(device, str(tmp_path))
    assert not is_mounted_elsewhere(device, "/elsewhere")
    assert not is_mounted_elsewhere(tmp_path.stat().st_dev, str(tmp_path))
    container.communicate("\n")
    wait_until(lambda: not is_mounted_elsewhere(device, str(tmp_path)))


@needs_mounts
@pytest.mark.parametrize("end", ODD_ENDS_OF_LINES)
def test_a_tenants_mount_with_any_name_hides_no_other(tmp_path: Path, end: str) -> None:
    (odd := tmp_path / f"a{end}b{end}c").mkdir()
    script = 'mount -t tmpfs tenant "$1" && mount -t tmpfs gpu-share /mnt && stat -c %d /mnt && read line'
    container = subprocess.Popen(
        [*ISOLATED, "sh", "-c", script, "sh", odd], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert container.stdout is not None
    assert is_mounted_elsewhere(int(container.stdout.readline()), "/mnt")
    container.communicate("\n")
