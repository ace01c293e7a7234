import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plugin.errors import HandoverError
from plugin.gpus.gpu import Pool
from plugin.shares.cdi import grids_of, specification
from plugin.shares.cdi_directory import file_name, remedy, remove_stale, write_specification
from plugin.shares.strategy import Mps, Whole
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.shares.cdi_runtime import read_directory

NAME = "gpu-share.dev/vgpu"
FILE = "gpu-share_gpu-share.dev_vgpu.json"


def content(gpus: str = "1xH200", *, vgpus_per_gpu: int = 10, name: str = NAME) -> bytes:
    pool = Pool(gpus=simulated_gpus(gpus), vgpus_per_gpu=vgpus_per_gpu)
    return specification(name, grids_of(pool, Whole() if vgpus_per_gpu == 1 else Mps("/tmp/nvidia-mps")))


def test_a_specification_lies_in_a_directory_that_everyone_can_read(tmp_path: Path) -> None:
    directory = tmp_path / "var/run/cdi"
    before = os.umask(0o027)
    try:
        write_specification(directory, NAME, content())
    finally:
        os.umask(before)
    assert [path.name for path in directory.iterdir()] == [FILE]
    assert directory.stat().st_mode & 0o777 == 0o755
    assert len(read_directory(directory)) == 11


def test_a_directory_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    write_specification(tmp_path, NAME, content())
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_each_resource_has_its_own_file(tmp_path: Path) -> None:
    names = [NAME, "gpu-share.dev/vgpu.x", "gpu-share.dev/vgpu-x", "other.dev/vgpu", "gpu-share.dev/gpu"]
    for name in names:
        write_specification(tmp_path, name, content(name=name))
    assert len(read_directory(tmp_path)) == 11 * len(names)


def test_a_specification_is_written_anew_only_if_it_says_something_new(tmp_path: Path) -> None:
    write_specification(tmp_path, NAME, content("2xH200"))
    first = (tmp_path / FILE).stat()
    write_specification(tmp_path, NAME, content("2xH200"))
    assert (tmp_path / FILE).stat().st_ino == first.st_ino
    write_specification(tmp_path, NAME, content("1xH200"))  # shorter
    assert (tmp_path / FILE).read_bytes() == content("1xH200")
    write_specification(tmp_path, NAME, content("2xH200"))  # longer
    assert (tmp_path / FILE).read_bytes() == content("2xH200")


def test_a_specification_that_someone_has_appended_to_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content() + b"{}")
    write_specification(tmp_path, NAME, content())
    assert (tmp_path / FILE).read_bytes() == content()


def test_a_runtime_that_looks_while_a_specification_is_written_sees_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_specification(tmp_path, NAME, content("1xH200"))
    seen: list[int] = []
    put_in_place = Path.replace

    def look_and_put_in_place(written: Path, place: Path) -> Path:
        assert written.read_bytes() == content("2xH200")
        assert (
            written.parent == place.parent
        )  # runtimes hear of a file that is renamed within the directory, and of no other
        seen.append(len(read_directory(tmp_path)))
        return put_in_place(written, place)

    monkeypatch.setattr(Path, "replace", look_and_put_in_place)
    write_specification(tmp_path, NAME, content("2xH200"))
    assert (seen, len(read_directory(tmp_path))) == ([11], 21)


def test_what_this_node_no_longer_has_is_removed_and_nothing_else_is_touched(tmp_path: Path) -> None:
    others = [
        "nvidia.yaml",
        "nvidia.com-gpu.json",
        "gpu-share.json",
        "gpu-share_mine.json",
        "gpu-share_gpu-share.dev_vgpu.yaml",
        "gpu-share_gpu-share.dev_vgpu.json.bak",
        "my-gpu-share_gpu-share.dev_old.json",
        ".gpu-share_gpu-share.dev_vgpu.json.swp",
        ".nvidia.yaml.4711.new",
    ]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / "gpu-share_gpu-share.dev_directory.json").mkdir()
    for name in (NAME, "gpu-share.dev/old", "nvidia.com/gpu.shared"):
        write_specification(tmp_path, name, content(name=name))
    remove_stale(tmp_path, [NAME, "gpu-share.dev/gpu"])
    assert {path.name for path in tmp_path.iterdir()} == {*others, FILE, "gpu-share_gpu-share.dev_directory.json"}


@pytest.mark.parametrize("left_behind", [f".{FILE}.4711.new", f".{file_name('a.b/old.x')}.1.new"])
def test_what_a_killed_run_left_half_written_is_not_read_and_is_removed(tmp_path: Path, left_behind: str) -> None:
    (tmp_path / left_behind).write_bytes(content()[:100])
    assert read_directory(tmp_path) == {}
    remove_stale(tmp_path, [NAME])
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_has_nothing_stale(tmp_path: Path) -> None:
    remove_stale(tmp_path / "cdi", [NAME])
    assert list(tmp_path.iterdir()) == []


def _a_file(directory: Path) -> None:
    directory.touch()


def _below_a_file(directory: Path) -> None:
    directory.parent.rmdir()
    directory.parent.touch()


def _with_a_directory_for_a_file(directory: Path) -> None:
    (directory / FILE).mkdir(parents=True)


@pytest.mark.parametrize("broken", [_a_file, _below_a_file, _with_a_directory_for_a_file])
def test_a_directory_that_cannot_be_written_to_is_one_sentence_with_the_way_out(
    tmp_path: Path, broken: Callable[[Path], None]
) -> None:
    directory = tmp_path / "run" / "cdi"
    directory.parent.mkdir()
    broken(directory)
    with pytest.raises(
        HandoverError, match=rf"^--cdi-dir {directory}: .*, writable, or leave cdi out of handover in _cluster[.]yaml$"
    ):
        write_specification(directory, NAME, content())


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.ENOSPC, "make room on that file system of the node"),
        (errno.EDQUOT, "make room on that file system of the node"),
        (errno.EROFS, "give the plugin this directory of the host, writable"),
    ],
)
def test_the_way_out_is_room_where_there_is_none(number: int, way_out: str) -> None:
    assert remedy(OSError(number, os.strerror(number))) == way_out


def test_a_file_that_cannot_be_removed_is_the_same_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    (tmp_path / FILE).touch()
    monkeypatch.setattr(Path, "unlink", reject)
    with pytest.raises(HandoverError, match=rf"^--cdi-dir {tmp_path}: .* Operation not permitted: "):
        remove_stale(tmp_path, [])


def test_a_pipe_in_the_place_of_a_specification_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    write_specification(tmp_path, NAME, content())
    assert len(read_directory(tmp_path)) == 11
