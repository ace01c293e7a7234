"""Files that cannot be read for a moment, as for want of descriptors in the whole system."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.errors import PolicyError
from policies.reading.store import ClusterFile, PolicyStore
from program.files import read_file
from tests.policies.reading.volume import maximum, swap, write

Fail = Callable[[str, int], list[str]]
PASSING = (errno.ENFILE, errno.EMFILE, errno.ENOMEM, errno.EIO)
LASTING = (errno.EACCES, errno.ENOENT, errno.ELOOP)


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Have the next reading of a file fail; what is returned lists each reading."""

    def fail_once(name: str, number: int) -> list[str]:
        read: list[str] = []

        def failing(path: Path, *, most_bytes: int) -> bytes:
            read.append(path.name)
            if path.name == name and read.count(name) == 1:
                raise OSError(number, os.strerror(number))
            return read_file(path, most_bytes=most_bytes)

        monkeypatch.setattr("policies.reading.directory.read_file", failing)
        return read

    return fail_once


@pytest.mark.parametrize("number", PASSING)
def test_a_file_that_could_not_be_read_for_a_moment_is_read_again(tmp_path: Path, fail: Fail, number: int) -> None:
    swap(tmp_path, 1, team="share: {maximum: '0.5'}")
    store = PolicyStore(tmp_path)
    swap(tmp_path, 2, team="share: {maximum: '0.2'}", other="mode: warn")
    fail("team.yaml", number)
    assert store.refresh() is True
    assert [one.problem.message for one in store.troubles] == [f"cannot be read: {os.strerror(number)}"]
    assert (maximum(store.current), store.current.of("other").policy.mode) == ("0.5", "warn")
    assert store.refresh() is True
    assert (maximum(store.current), store.troubles) == ("0.2", ())
    assert store.refresh() is False


def test_as_long_as_it_cannot_be_read_that_is_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap(tmp_path, 1, team="share: {maximum: '0.5'}", other="mode: wrong")
    store = PolicyStore(tmp_path)

    def failing(_: Path, *, most_bytes: int) -> bytes:  # noqa: ARG001 - as the other is called
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("policies.reading.directory.read_file", failing)
    swap(tmp_path, 2, team="share: {maximum: '0.2'}", other="mode: wrong")
    store.refresh()
    told = store.troubles
    assert len(told) == 2
    for _ in range(3):
        assert store.refresh() is False
        assert store.troubles is told


def test_so_is_one_that_could_not_be_read_at_the_start(tmp_path: Path, fail: Fail) -> None:
    swap(tmp_path, 1, team="share: {maximum: '0.5'}")
    fail("team.yaml", errno.ENFILE)
    store = PolicyStore(tmp_path)
    assert store.current.of("team").broken
    assert store.refresh() is True
    assert (maximum(store.current), store.troubles) == ("0.5", ())


def test_so_is_the_cluster_file_where_it_is_read_alone(tmp_path: Path, fail: Fail) -> None:
    swap(tmp_path, 1, _cluster="vgpusPerGpu: 20")
    fail("_cluster.yaml", errno.ENFILE)
    file = ClusterFile(tmp_path)
    with pytest.raises(PolicyError):
        file.newest()
    cluster = file.newest()
    assert cluster is not None
    assert cluster.vgpus_per_gpu == 20
    assert file.newest() is None


@pytest.mark.parametrize("number", LASTING)
def test_one_that_cannot_be_read_as_it_is_waits_for_a_change(tmp_path: Path, fail: Fail, number: int) -> None:
    swap(tmp_path, 1, team="share: {maximum: '0.5'}")
    store = PolicyStore(tmp_path)
    swap(tmp_path, 2, team="share: {maximum: '0.2'}")
    read = fail("team.yaml", number)
    for _ in range(3):
        assert store.refresh() is False
    assert read == ["team.yaml"]
    assert maximum(store.current) == "0.5"


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("number", PASSING)
def test_the_file_of_kustomize_that_could_not_be_read_for_a_moment_is_nobodys_policy(
    tmp_path: Path, fail: Fail, number: int, *, starts: bool
) -> None:
    write(tmp_path, _default="", kustomization="configMapGenerator:\n- name: gpu-share-policies\n")
    store = PolicyStore(tmp_path)
    fail("kustomization.yaml", number)
    if starts:
        store = PolicyStore(tmp_path)
    else:
        write(tmp_path, _default="mode: warn")
    store.refresh()
    assert (store.troubles, store.current.of("kustomization")) == ((), store.current.default)


def test_one_that_can_be_read_at_no_look_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, _default="", kustomization="configMapGenerator:\n- name: gpu-share-policies\n")

    def failing(path: Path, *, most_bytes: int) -> bytes:
        if path.name == "kustomization.yaml":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return read_file(path, most_bytes=most_bytes)

    with monkeypatch.context() as patched:
        patched.setattr("policies.reading.directory.read_file", failing)
        store = PolicyStore(tmp_path)
        assert [one.problem.message for one in store.troubles] == [f"cannot be read: {os.strerror(errno.EMFILE)}"]
    store.refresh()
    assert (store.troubles, store.current.of("kustomization")) == ((), store.current.default)
