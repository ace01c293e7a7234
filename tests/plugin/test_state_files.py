import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

from plugin.state_files import read_json, write_atomically, write_reserved


class Said(msgspec.Struct, frozen=True):
    word: str


def test_what_is_written_is_read_by_anybody_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "said", b'{"word": "one"}')
    finally:
        os.umask(before)
    assert read_json(tmp_path / "said", Said) == Said("one")
    assert (tmp_path / "said").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["said"]


def test_a_reader_that_has_the_old_file_open_keeps_it(tmp_path: Path) -> None:
    write_atomically(tmp_path / "said", b"old")
    with (tmp_path / "said").open("rb") as file:
        write_atomically(tmp_path / "said", b"new, and longer")
        assert file.read() == b"old"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "inside").touch()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "said", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["said"]


def test_a_link_in_the_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / f".said.{os.getpid()}.new").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "said", b"new")
    assert victim.read_text() == "kept"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"word": 1}', b'{"word": "\xff"}', b"[" * 100_000, b'{"word": "' + b"a" * (16 << 20) + b'"}'],
)
def test_a_file_that_says_something_else_is_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "said").write_bytes(content)
    assert read_json(tmp_path / "said", Said) is None


def test_what_is_no_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "good").write_text('{"word": "one"}')
    (tmp_path / "link").symlink_to(tmp_path / "good")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert [read_json(tmp_path / name, Said) for name in ("link", "directory", "pipe", "absent")] == [None] * 4


ROOM_BYTES = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """Give a file system with room for 1 MiB."""
    directory = tmp_path / "small"
    directory.mkdir()
    mounted = subprocess.run(
        ["/usr/bin/env", "mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES}", "tmpfs", directory],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a tmpfs")
    yield directory
    subprocess.run(["/usr/bin/env", "umount", directory], check=True)


def fill(directory: Path) -> None:
    """Take what is left, as a program's log would that is written without end."""
    with suppress(OSError), (directory / "log").open("ab", buffering=0) as log:
        while True:
            log.write(b"x" * 512)


def said(number: int) -> bytes:
    return msgspec.json.encode(Said("x" * (number % 50_000) + str(number)))


def test_a_state_is_written_again_and_again_beside_a_log_that_takes_all_the_room(small: Path) -> None:
    path = small / "state.json"
    write_reserved(path, said(0))
    for number in range(1, 200):
        fill(small)
        write_reserved(path, said(number))
        found = read_json(path, Said)
        assert found is not None
        assert msgspec.json.encode(found) == said(number)
        assert path.stat().st_mode & 0o777 == 0o644


def test_a_state_that_was_never_written_fails_in_a_full_directory_and_leaves_nothing(small: Path) -> None:
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        write_reserved(small / "state.json", said(1))
    assert [path.name for path in small.iterdir()] == ["log"]


def test_room_is_held_again_once_there_is_some(small: Path) -> None:
    path = small / "state.json"
    write_reserved(path, said(1))
    (small / ".state.json.reserve").unlink()
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        write_reserved(path, said(2))
    assert read_json(path, Said) == msgspec.json.decode(said(1), type=Said)
    (small / "log").unlink()
    write_reserved(path, said(3))
    fill(small)
    write_reserved(path, said(4))
    assert read_json(path, Said) == msgspec.json.decode(said(4), type=Said)


def test_a_state_that_grows_beyond_its_reserve_keeps_the_last_one_that_fitted(small: Path) -> None:
    path = small / "state.json"
    write_reserved(path, said(1))
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        write_reserved(path, msgspec.json.encode(Said("x" * 70_000)))
    assert read_json(path, Said) == msgspec.json.decode(said(1), type=Said)


def test_no_reader_ever_sees_parts_of_two_states(small: Path) -> None:
    path = small / "state.json"
    for text in ("a", "b"):
        write_reserved(path, msgspec.json.encode(Said(text * 60_000)))
    fill(small)
    ended = Event()

    def write() -> None:
        for number in range(2000):
            write_reserved(path, msgspec.json.encode(Said("ab"[number % 2] * 60_000)))
        ended.set()

    writer = Thread(target=write)
    writer.start()
    reads = 0
    while not ended.is_set():
        found = read_json(path, Said)
        assert found is not None
        assert len(set(found.word)) == 1
        reads += 1
    writer.join()
    assert reads


def test_a_link_in_the_place_of_the_reserve_is_not_followed(small: Path) -> None:
    (small / "victim").write_bytes(b"k" * (1 << 17))
    (small / ".state.json.reserve").symlink_to(small / "victim")
    write_reserved(small / "state.json", said(1))
    fill(small)
    with pytest.raises(OSError, match="No space left"):
        write_reserved(small / "state.json", said(2))
    assert (small / "victim").read_bytes() == b"k" * (1 << 17)


def test_a_pipe_in_the_place_of_the_reserve_waits_for_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".state.json.reserve")
    write_reserved(tmp_path / "state.json", said(1))
    assert read_json(tmp_path / "state.json", Said) is not None


def test_what_goes_to_the_disk_is_there_before_it_takes_its_place_and_its_place_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[str, bool]] = []

    def force(descriptor: int) -> None:
        forced.append((Path(f"/proc/self/fd/{descriptor}").readlink().name, (tmp_path / "state.json").exists()))

    monkeypatch.setattr(os, "fsync", force)
    write_atomically(tmp_path / "state.json", b"{}")
    assert forced == []
    (tmp_path / "state.json").unlink()
    write_atomically(tmp_path / "state.json", b"{}", to_disk=True)
    assert forced == [(f".state.json.{os.getpid()}.new", False), (tmp_path.name, True)]
