"""The name of a policy file says which namespace it is for."""

from pathlib import Path

import pytest

from policies.errors import PolicyError
from policies.reading.layers import problem_of_name
from policies.reading.store import ClusterFile, PolicyStore, load_cluster
from tests.policies.reading.volume import maximum, swap, write


@pytest.mark.parametrize(
    "name",
    ["_cluster.yaml", "_default.yaml", "default.yaml", "team-1.yaml", "0.yaml", f"{'a' * 63}.yaml"],
)
def test_a_good_file_name(name: str) -> None:
    assert problem_of_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "_defaults.yaml",
        "_Default.yaml",
        "team.yml",
        "_default.yml",
        "Team.yaml",
        "team_a.yaml",
        "-a.yaml",
        "a-.yaml",
        "a.b.yaml",
        f"{'a' * 64}.yaml",
        "t\u00e9am.yaml",
        "a\n.yaml",
    ],
)
def test_a_name_that_is_no_namespace_is_a_fault(name: str) -> None:
    problem = problem_of_name(name)
    assert problem is not None
    assert (problem.file, problem.line) == (name, 0)
    assert "rename" in problem.message


def test_a_key_of_a_configmap_without_the_ending_is_told_and_costs_nobody(tmp_path: Path) -> None:
    swap(tmp_path, 1, _default="", other="share: {maximum: '0.3'}")
    for name in ("team", "team-b.yaml.txt", "_cluster", "other.yaml.orig", "README"):
        (tmp_path / "..data" / name).write_text("enabled: false")
    store = PolicyStore(tmp_path)
    assert {Path(one.problem.file).name for one in store.troubles} == {"_cluster", "team", "team-b.yaml.txt"}
    assert {(one.policy, one.effect) for one in store.troubles} == {("", "no policy is affected")}
    assert (maximum(store.current, "other"), store.current.of("team")) == ("0.3", store.current.default)
    assert load_cluster(tmp_path) == store.current.cluster


def test_a_plain_directory_has_files_for_other_purposes(tmp_path: Path) -> None:
    for name in ("team", "notes.yaml.txt", "makefile"):
        (tmp_path / name).write_text("")
    assert PolicyStore(tmp_path).troubles == ()


TWINS = ["_cluster.yml", "_CLUSTER.yaml", "_cluster.YAML", "_Cluster.Yml"]
BOTH = [*TWINS, "_default.yml", "_DEFAULT.yaml", "_default.YAML"]


def with_twins(directory: Path, *twins: str) -> Path:
    write(directory, _cluster="vgpusPerGpu: 20", _default="share: {maximum: '0.4'}")
    for twin in twins:
        (directory / twin).write_text("nonsense: 1\n")
    return directory


@pytest.mark.parametrize("twins", [*([twin] for twin in BOTH), BOTH])
def test_a_twin_beside_the_exact_name_is_told_and_stops_nothing(twins: list[str], tmp_path: Path) -> None:
    store = PolicyStore(with_twins(tmp_path, *twins))
    assert {Path(one.problem.file).name for one in store.troubles} == set(twins)
    assert {(one.policy, one.effect) for one in store.troubles} == {("", "no policy is affected")}
    write(tmp_path, _cluster="vgpusPerGpu: 40", _default="share: {maximum: '0.5'}")
    assert store.refresh() is True
    assert (store.current.cluster.vgpus_per_gpu, maximum(store.current)) == (40, "0.5")


def test_a_twin_that_comes_while_a_process_runs_freezes_nothing(tmp_path: Path) -> None:
    store = PolicyStore(with_twins(tmp_path))
    with_twins(tmp_path, *BOTH)
    write(tmp_path, _cluster="vgpusPerGpu: 40", _default="share: {maximum: '0.5'}")
    assert store.refresh() is True
    assert (store.current.cluster.vgpus_per_gpu, maximum(store.current)) == (40, "0.5")


@pytest.mark.parametrize("twin", TWINS)
def test_a_process_that_reads_the_cluster_file_alone_takes_no_twin_for_it(twin: str, tmp_path: Path) -> None:
    swap(tmp_path, 1, _cluster="vgpusPerGpu: 20")
    newest = ClusterFile(tmp_path).newest
    assert load_cluster(tmp_path) == newest()
    swap(tmp_path, 2, _cluster="vgpusPerGpu: 40")
    (tmp_path / "..data" / twin).write_text("")
    cluster = newest()
    assert cluster == load_cluster(tmp_path)
    assert cluster is not None
    assert cluster.vgpus_per_gpu == 40


def test_a_twin_stands_for_the_file_that_is_missing_and_so_does_each_of_two(tmp_path: Path) -> None:
    for name in ("_cluster.yml", "_CLUSTER.yaml", "_default.yml"):
        (tmp_path / name).write_text("")
    with pytest.raises(PolicyError) as caught:
        PolicyStore(tmp_path)
    assert [Path(one.file).name for one in caught.value.problems] == ["_CLUSTER.yaml", "_cluster.yml", "_default.yml"]
    with pytest.raises(PolicyError) as caught:
        load_cluster(tmp_path)
    assert [Path(one.file).name for one in caught.value.problems] == ["_CLUSTER.yaml", "_cluster.yml"]


def test_a_file_that_is_renamed_to_its_twin_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    store = PolicyStore(with_twins(tmp_path))
    for name in ("_cluster", "_default"):
        (tmp_path / f"{name}.yaml").rename(tmp_path / f"{name}.yml")
    store.refresh()
    assert (store.current.cluster.vgpus_per_gpu, maximum(store.current)) == (20, "0.4")
    assert {(one.policy, one.effect) for one in store.troubles} == {
        ("_cluster", "the last good one stays in force"),
        ("_default", "the last good one stays in force"),
    }


def test_a_broken_file_costs_no_less_for_the_twin_beside_it(tmp_path: Path) -> None:
    write(with_twins(tmp_path, *BOTH), _cluster="vgpusPerGpu: 0")
    with pytest.raises(PolicyError) as caught:
        PolicyStore(tmp_path)
    assert [Path(one.file).name for one in caught.value.problems] == ["_cluster.yaml"]


def test_a_twin_of_a_namespaces_file_costs_the_namespace_alone(tmp_path: Path) -> None:
    write(with_twins(tmp_path, "team.yml"), team="", other="share: {maximum: '0.3'}")
    store = PolicyStore(tmp_path)
    assert [name for name, one in store.current.namespaces.items() if one.broken] == ["team"]
    assert maximum(store.current, "other") == "0.3"
