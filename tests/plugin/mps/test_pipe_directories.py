import logging
import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from plugin.errors import MpsError
from plugin.mps import pipe_directories as directories
from plugin.mps.pipe_directories import clear, label, prepare, prepare_pipe_directory
from tests.plugin.mps.conftest import UUID, close_to_a_user, names


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_directories_can_be_entered_by_all_and_written_to_by_us_whatever_the_umask(root: Path) -> None:
    before = os.umask(0o077)
    try:
        prepare_pipe_directory(root / "p")
        pipe = prepare(root / "p", UUID)
    finally:
        os.umask(before)
    assert (mode(root / "p"), mode(pipe)) == (0o755, 0o755)


def test_a_directory_that_was_made_for_all_to_write_to_is_taken_back(pipes: Path) -> None:
    pipes.chmod(0o777)
    (pipes / UUID).mkdir(mode=0o700)
    prepare_pipe_directory(pipes)
    assert (mode(pipes), mode(prepare(pipes, UUID))) == (0o755, 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_that_was_given_away_is_taken_back(pipes: Path) -> None:
    os.chown(pipes, 1234, 1234)
    prepare_pipe_directory(pipes)
    assert (pipes.stat().st_uid, pipes.stat().st_gid) == (os.geteuid(), os.getegid())


@pytest.mark.parametrize("kind", ["access", "default"])
def test_a_directory_that_an_acl_closed_to_some_users_is_open_to_all_again(pipes: Path, kind: str) -> None:
    close_to_a_user(prepare(pipes, UUID), kind)
    assert f"system.posix_acl_{kind}" in os.listxattr(pipes / UUID)
    prepare(pipes, UUID)
    assert (mode(pipes / UUID), os.listxattr(pipes / UUID)) == (0o755, [])


def test_a_pipe_directory_that_containers_have_mounted_stays_the_same_one(pipes: Path) -> None:
    inode = prepare(pipes, UUID).stat().st_ino
    clear(pipes, UUID)
    assert prepare(pipes, UUID).stat().st_ino == inode


def test_a_parent_that_others_cannot_enter_is_named_with_the_fix(root: Path) -> None:
    root.chmod(0o700)
    with pytest.raises(MpsError, match=f"users other than root cannot enter {root}, .* chmod o\\+x {root}"):
        prepare_pipe_directory(root / "p")


@pytest.mark.parametrize("planted", ["link", "file"])
def test_a_pipe_directory_that_is_something_else_is_rejected(root: Path, planted: str) -> None:
    if planted == "link":
        (root / "elsewhere").mkdir()
        (root / "p").symlink_to(root / "elsewhere")
    else:
        (root / "p").write_text("")
    with pytest.raises(MpsError, match="expected a directory that can be written to, and no link"):
        prepare_pipe_directory(root / "p")


def test_a_link_in_a_pipe_directories_place_is_replaced_and_what_it_names_is_left_alone(
    root: Path, pipes: Path
) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "file").write_text("")
    for act in (prepare, clear):
        (pipes / UUID).symlink_to(elsewhere)
        act(pipes, UUID)
        assert not (pipes / UUID).is_symlink()
        assert (pipes / UUID).is_dir()
        (pipes / UUID).rmdir()
    assert (mode(elsewhere), names(elsewhere)) == (0o700, ["file"])


def test_clearing_removes_sockets_pipes_links_and_directories_and_follows_nothing(root: Path, pipes: Path) -> None:
    pipe, elsewhere = prepare(pipes, UUID), root / "elsewhere"
    (elsewhere / "below").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(pipe / "control"))
    os.mkfifo(pipe / "log")
    (pipe / "nvidia-cuda-mps-control.pid").symlink_to(elsewhere)
    (pipe / "control_privileged").mkdir()
    (pipe / "control_privileged" / "link").symlink_to(elsewhere)
    clear(pipes, UUID)
    assert names(pipe) == []
    assert names(elsewhere) == ["below"]


def test_a_tree_of_any_depth_is_removed_so_that_nobody_can_keep_a_gpu_from_its_daemon(pipes: Path) -> None:
    pipe = prepare(pipes, UUID)
    here = Path.cwd()
    try:
        os.chdir(pipe)
        for _ in range(5000):  # more than files that may be open, and than calls in each other
            Path("d").mkdir()
            Path("e").mkdir()
            os.chdir("d")
    finally:
        os.chdir(here)
    before = len(names(Path("/proc/self/fd")))
    clear(pipes, UUID)
    assert names(pipe) == []
    assert len(names(Path("/proc/self/fd"))) == before


def test_a_directory_of_any_size_is_cleared_in_little_memory(pipes: Path) -> None:
    for place in (pipes / UUID, pipes / UUID / "below"):
        place.mkdir(exist_ok=True)
        for number in range(6_000):
            (place / f"{number:0100}").touch()
    tracemalloc.start()
    try:
        clear(pipes, UUID)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert names(pipes / UUID) == []
    assert peak_bytes < 900_000


def test_what_cannot_be_removed_is_an_error_that_says_so(pipes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prepare(pipes, UUID) / "a" / "b" / "c").mkdir(parents=True)
    monkeypatch.setattr("plugin.mps.pipe_directories._MOST_ROUNDS", 2)
    with pytest.raises(MpsError, match="cannot be emptied: Directory not empty: empty it by hand"):
        clear(pipes, UUID)


def test_a_socket_path_that_is_too_long_is_rejected_before_a_daemon_fails_over_it(root: Path) -> None:
    with pytest.raises(MpsError, match=r"control_privileged: longer than the 107 bytes .* mps\.pipeDirectory"):
        prepare(root / ("x" * 40), UUID)


def test_where_selinux_is_the_directory_is_labelled_for_containers(
    root: Path, pipes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    descriptor = os.open(pipes, os.O_RDONLY)
    try:
        label(descriptor, selinux=root)
        if not caplog.messages:
            assert os.getxattr(pipes, "security.selinux") == b"system_u:object_r:container_file_t:s0"
    finally:
        os.close(descriptor)


def test_a_label_that_cannot_be_set_is_a_warning(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    read, write = os.pipe()
    try:
        label(read, selinux=root)  # a pipe has none
        label(write, selinux=root / "missing")
    finally:
        os.close(read)
        os.close(write)
    assert caplog.messages == ["SELinux label not set: pods may not reach MPS"]


def test_no_file_stays_open(pipes: Path) -> None:
    before = len(names(Path("/proc/self/fd")))
    prepare(pipes, UUID)
    clear(pipes, UUID)
    with pytest.raises(MpsError):
        directories.prepare(pipes / "missing", UUID)
    assert len(names(Path("/proc/self/fd"))) == before


@pytest.mark.parametrize("name", ["", ".", "..", "../other", "a/b"])
def test_what_is_no_name_leads_nowhere(root: Path, pipes: Path, name: str) -> None:
    (root / "other").mkdir()
    (root / "other" / "file").touch()
    for act in (prepare, clear):
        with pytest.raises(MpsError, match="expected the name of a directory in it"):
            act(pipes, name)
    assert (root / "other" / "file").exists()
    assert names(pipes) == []
