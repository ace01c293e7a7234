import os
from pathlib import Path

import msgspec
import pytest

from plugin.state_files import read_json, write_atomically


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
    [b"", b"{", b'{"word": 1}', b'{"word": "\xff"}', b"[" * 100_000, b'{"word": "' + b"a" * (1 << 20) + b'"}'],
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
