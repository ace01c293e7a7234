"""A broken file costs its namespace alone: the cases that random states seldom meet."""

import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import PolicyError, Problem
from policies.reading.layers import Layer, read_layer
from policies.reading.store import PolicyStore, load
from tests.policies.reading.volume import maximum, swap, swapping, write


def test_a_swap_in_the_middle_of_the_first_reading_mixes_no_states_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(tmp_path, 2, _default="share: {minimum: '0.3', maximum: '0.4'}", team="mode: warn")
    monkeypatch.setattr("policies.reading.directory.read_layer", swapping(read_layer, tmp_path))
    store = PolicyStore(tmp_path)
    assert (maximum(store.current), store.troubles) == ("0.6", ())


def test_what_cannot_be_opened_costs_its_namespace_alone_and_hides_no_later_change(tmp_path: Path) -> None:
    write(tmp_path, other="share: {maximum: '0.5'}")
    (tmp_path / "nowhere.yaml").symlink_to("missing")
    (tmp_path / "directory.yaml").mkdir()
    (tmp_path / "kustomization.yaml").mkdir()
    store = PolicyStore(tmp_path)
    broken = {name for name in store.current.namespaces if store.current.of(name).broken}
    assert broken == {"nowhere", "directory", "kustomization"}
    assert maximum(store.current, "other") == "0.5"
    write(tmp_path, other="share: {maximum: '0.45'}")
    assert store.refresh() is True
    assert maximum(store.current, "other") == "0.45"


def test_what_is_no_file_or_has_no_end_costs_its_namespace_alone_and_nobody_waits_for_it(tmp_path: Path) -> None:
    write(tmp_path, other="share: {maximum: '0.5'}")
    os.mkfifo(tmp_path / "pipe.yaml")
    os.mkfifo(tmp_path / "kustomization.yaml")
    (tmp_path / "link.yaml").symlink_to("pipe.yaml")
    (tmp_path / "zeros.yaml").symlink_to("/dev/zero")
    (tmp_path / "terminal.yaml").symlink_to("/dev/ptmx")
    (tmp_path / "round.yaml").symlink_to("round.yaml")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.yaml"))
    with (tmp_path / "endless.yaml").open("wb") as file:
        file.truncate(1 << 40)
    store = PolicyStore(tmp_path)
    told = {one.policy: one.problem.message for one in store.troubles}
    assert told == {
        "pipe": "cannot be read: expected a file, got a named pipe",
        "link": "cannot be read: expected a file, got a named pipe",
        "kustomization": "cannot be read: expected a file, got a named pipe",
        "zeros": "cannot be read: expected a file, got a device",
        "terminal": "cannot be read: expected a file, got a device",
        "round": "cannot be read: Too many levels of symbolic links",
        "socket": "cannot be read: expected a file, got a socket",
        "endless": "larger than 1024 KiB: split it",
    }
    write(tmp_path, other="share: {maximum: '0.45'}")
    assert store.refresh() is True
    assert maximum(store.current, "other") == "0.45"


def test_a_pipe_in_the_place_of_a_file_leaves_the_last_good_policy_and_stops_no_later_change(tmp_path: Path) -> None:
    write(tmp_path, other="share: {maximum: '0.5'}", team="share: {maximum: '0.4'}")
    store = PolicyStore(tmp_path)
    (tmp_path / "team.yaml").unlink()
    os.mkfifo(tmp_path / "team.yaml")
    write(tmp_path, other="share: {maximum: '0.45'}")
    assert store.refresh() is True
    assert (maximum(store.current, "other"), maximum(store.current, "team")) == ("0.45", "0.4")


def test_names_that_no_terminal_should_see_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\n\x1b[2J.yaml").write_text("")
    (tmp_path / os.fsdecode(b"\xff.yaml")).write_text("")
    (first, second) = PolicyStore(tmp_path).troubles
    assert str(first).isprintable()
    assert str(second).isprintable()
    assert first.effect == second.effect == "no policy is affected"


def test_a_file_of_an_exempt_namespace_costs_nobody(tmp_path: Path) -> None:
    write(tmp_path, _cluster="exemptNamespaces: [system]", system="mode: x")
    (trouble,) = PolicyStore(tmp_path).troubles
    assert trouble.effect == "no pod is affected: the namespace is exempt"


def test_a_conflict_that_a_new_default_brings_leaves_the_policy_that_was_until_one_of_the_two_is_changed(
    tmp_path: Path,
) -> None:
    swap(tmp_path, 1, _default="share: {maximum: '0.8'}", team="share: {minimum: '0.5'}", other="mode: warn")
    store = PolicyStore(tmp_path)
    swap(tmp_path, 2, _default="share: {maximum: '0.4'}", team="share: {minimum: '0.5'}", other="mode: warn")
    assert store.refresh() is True
    assert (maximum(store.current, "team"), maximum(store.current, "other")) == ("0.8", "0.4")
    swap(tmp_path, 3, _default="share: {maximum: '0.4'}", team="share: {minimum: '0.5'}", other="enabled: false")
    assert store.refresh() is True
    assert maximum(store.current, "team") == "0.8"
    assert [(one.problem.field, one.policy) for one in store.troubles] == [("share.minimum", "team")]
    swap(tmp_path, 4, _default="share: {maximum: '0.7'}", team="share: {minimum: '0.5'}", other="enabled: false")
    assert store.refresh() is True
    assert (maximum(store.current, "team"), store.troubles) == ("0.7", ())


def test_only_what_changed_is_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap(tmp_path, 1, _default="share: {maximum: '0.8'}", team="mode: warn", other="mode: warn")
    store = PolicyStore(tmp_path)
    other, parsed = store.current.of("other"), []

    def reading(file: str, text: str, problems: list[Problem], *, most: int) -> Layer:
        parsed.append(file)
        return read_layer(file, text, problems, most=most)

    monkeypatch.setattr("policies.reading.directory.read_layer", reading)
    swap(tmp_path, 2, _default="share: {maximum: '0.8'}", team="mode: enforce", other="mode: warn")
    assert store.refresh() is True
    assert parsed == ["team.yaml"]
    assert store.current.of("other") is other


_CLUSTERS = (
    "",
    "nodes: [{model: '*T4*', device: t4, vgpusPerGpu: 4}]",
    "nodes: [{model: '*T4*', device: tesla-t4, vgpusPerGpu: 4}]",
    "partitions: {p: [{share: '0.5', resource: nvidia.com/mig-3g.40gb}]}",
    "mps: {pipeDirectory: /data/mps}",
)
_POLICIES = ("", "devices: [gpu, t4]", "strategy: partition\npartition: p", "hostPaths: [{path: /data}]")


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "_cluster": st.sampled_from(_CLUSTERS),
                "_default": st.sampled_from(_POLICIES),
                "team": st.sampled_from(_POLICIES),
            },
        ),
        max_size=5,
    )
)
def test_a_process_that_runs_says_of_the_files_what_one_that_starts_would(changes: list[dict[str, str]]) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        write(directory, _cluster="", _default="", team="")
        store = PolicyStore(directory)
        for change in changes:
            write(directory, **change)
            store.refresh()
            told = {str(one.problem) for one in store.troubles}
            starting = {str(one.problem) for one in PolicyStore(directory, needs=()).troubles}
            assert starting <= told, change
            assert bool(starting) == bool(told), change


def test_a_fault_of_the_reader_is_told_and_leaves_what_was_in_force_until_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, team="share: {maximum: '0.5'}")
    store = PolicyStore(tmp_path)

    def failing(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    with monkeypatch.context() as broken:
        broken.setattr("policies.reading.store.put_in_force", failing)
        write(tmp_path, team="share: {maximum: '0.4'}")
        for _ in range(2):
            assert store.refresh() is False
            (trouble,) = store.troubles
            assert trouble.problem.file == str(tmp_path)
            assert "a fault of gpu-share" in trouble.problem.message
            assert "RecursionError" in trouble.problem.message
            assert trouble.effect == "the last good policies stay in force"
            assert (store.broken_files, maximum(store.current)) == (1, "0.5")
    assert store.refresh() is True
    assert (store.troubles, store.broken_files, maximum(store.current)) == ((), 0, "0.4")


@pytest.mark.parametrize(
    ("cluster", "default"),
    [
        ("nodes: [{model: '*T4*', device: t4, vgpusPerGpu: 4}]", "devices: [gpu, t4]"),
        ("partitions: {mi300x: [{share: '1', resource: amd.com/gpu}]}", "{strategy: partition, partition: mi300x}"),
        ("mps: {pipeDirectory: /var/tmp/pipes}", "hostPaths: [{path: /tmp/nvidia-mps}]"),
    ],
)
def test_where_no_good_cluster_file_is_known_others_are_not_blamed_for_what_it_may_say(
    tmp_path: Path, cluster: str, default: str
) -> None:
    write(tmp_path, _cluster=f"vgpusPerGpu: '10'\n{cluster}", _default=default, team="hostPaths: [{path: /dev}]")
    with pytest.raises(PolicyError) as raised:
        load(tmp_path)
    assert {Path(one.file).name for one in raised.value.problems} == {"_cluster.yaml", "team.yaml"}


def test_others_are_judged_by_the_last_good_cluster_file_that_is_known(tmp_path: Path) -> None:
    write(tmp_path, _cluster="nodes: [{model: '*T4*', device: t4}]", team="devices: [t4]")
    store = PolicyStore(tmp_path)
    write(tmp_path, _cluster="vgpusPerGpu: '10'", team="devices: [h200]")
    store.refresh()
    assert {one.policy for one in store.troubles} == {"_cluster", "team"}
