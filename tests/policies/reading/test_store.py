import random
import sys
from pathlib import Path

import pytest

from policies.errors import PolicyError, Problem
from policies.reading.document import LARGEST_BYTES
from policies.reading.layers import read_layer
from policies.reading.store import PolicyStore, load
from tests.policies.reading.volume import maximum, swap, swapping, write

SHIPPED = Path("policies/files")


def faults(directory: Path) -> list[tuple[str, int, str]]:
    with pytest.raises(PolicyError) as caught:
        load(directory)
    assert all(Path(one.file).parent == directory for one in caught.value.problems)
    return [(Path(one.file).name, one.line, one.field) for one in caught.value.problems]


def problems_of(directory: Path) -> tuple[Problem, ...]:
    try:
        load(directory)
    except PolicyError as error:
        return error.problems
    return ()


def test_the_shipped_files_are_good_and_say_what_the_design_says() -> None:
    loaded = load(SHIPPED)
    assert set(loaded.namespaces) == {"team-vision", "team-language"}
    assert loaded.cluster.vgpus_per_gpu == 10
    assert loaded.of("anything") is loaded.default
    assert loaded.of("team-language").policy.mps.attach == "node"
    assert loaded.is_exempt("kube-system")
    assert not loaded.is_exempt("default")


def test_an_empty_directory_means_the_built_in_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert loaded.default.name == "built-in"
    assert loaded.of("team").policy.enabled
    assert loaded.cluster.resource_names == {
        "mps": "gpu-share.dev/vgpu",
        "time-slicing": "gpu-share.dev/vgpu-timesliced",
        "whole": "gpu-share.dev/gpu",
    }


def test_the_namespace_called_default_is_a_namespace_like_any_other(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, _default="share: {maximum: '0.8'}", default="share: {maximum: '0.3'}"))
    assert (maximum(loaded, "default"), maximum(loaded, "other")) == ("0.3", "0.8")
    assert (loaded.of("default").name, loaded.of("other").name) == ("default", "_default")


def test_every_problem_of_every_file_is_reported(tmp_path: Path) -> None:
    write(
        tmp_path,
        _cluster="vgpusPerGpu: 0\n",
        _default="mode: x\nshare:\n  maximum: 1\n",
        team="enabeld: true",
        Bad_Name="",
        broken="a: [",
    )
    (tmp_path / "latin.yaml").write_bytes(b"enabled: true\n# \xe9\n")
    (tmp_path / "directory.yaml").mkdir()
    (tmp_path / "README.md").write_text("not a policy")
    assert {(file, field) for file, _, field in faults(tmp_path)} == {
        ("Bad_Name.yaml", ""),
        ("_cluster.yaml", "vgpusPerGpu"),
        ("_default.yaml", "mode"),
        ("_default.yaml", "share.maximum"),
        ("broken.yaml", ""),
        ("directory.yaml", ""),
        ("latin.yaml", ""),
        ("team.yaml", "enabeld"),
    }
    assert ("latin.yaml", 2, "") in faults(tmp_path)


def test_a_broken_default_file_brings_no_false_conflicts_with_it(tmp_path: Path) -> None:
    write(tmp_path, _default="enabeld: true\nshare: {maximum: '4', podMaximum: '4'}", team="share: {minimum: '2'}")
    assert faults(tmp_path) == [("_default.yaml", 1, "enabeld")]


def test_a_conflict_in_the_default_file_is_reported_once(tmp_path: Path) -> None:
    write(tmp_path, _default="share: {minimum: '0.5', maximum: '0.2'}", a="", b="mode: warn")
    assert faults(tmp_path) == [("_default.yaml", 1, "share.minimum")]


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_directory_that_cannot_be_read_is_a_problem(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PolicyError, match="cannot be read") as caught:
        load(tmp_path / place)
    assert "\n" not in str(caught.value)


def test_a_file_beyond_the_limit_is_called_too_large(tmp_path: Path) -> None:
    (tmp_path / "_default.yaml").write_text("#" + "\u00e9" * (LARGEST_BYTES // 2 + 10))
    with pytest.raises(PolicyError, match="larger than"):
        load(tmp_path)


def test_an_ending_in_capitals_is_no_way_to_lose_a_policy(tmp_path: Path) -> None:
    (tmp_path / "team.YAML").write_text("enabled: false")
    assert faults(tmp_path) == [("team.YAML", 0, "")]


def test_a_swap_of_a_configmap_is_taken_up(tmp_path: Path) -> None:
    swap(tmp_path, 1, _default="share: {maximum: '0.5'}", team="mode: warn")
    store = PolicyStore(tmp_path)
    assert maximum(store.current) == "0.5"
    assert store.refresh() is False
    swap(tmp_path, 2, _default="share: {maximum: '0.4'}")
    assert store.refresh() is True
    assert maximum(store.current) == "0.4"
    assert store.current.namespaces == {}
    assert not store.troubles
    assert store.refresh() is False


def test_a_broken_file_leaves_the_last_good_one_in_force_until_it_is_mended(tmp_path: Path) -> None:
    swap(tmp_path, 1, _default="share: {maximum: '0.5'}")
    store = PolicyStore(tmp_path)
    good = store.current
    swap(tmp_path, 2, _default="share: {maximum: 0.4}")
    assert store.refresh() is False
    assert store.current is good
    swap(tmp_path, 4, _default="share: {maximum: 0.4}", team="mode: warn")
    assert store.refresh() is True
    assert (maximum(store.current), store.current.of("team").policy.mode) == ("0.5", "warn")
    assert "_default.yaml:1: share.maximum" in str(store.troubles[0].problem)
    assert store.refresh() is False
    assert store.troubles
    swap(tmp_path, 3, _default="share: {maximum: '0.4'}", team="mode: warn")
    assert store.refresh() is True
    assert maximum(store.current) == "0.4"
    assert not store.troubles


def test_broken_files_at_the_start_are_an_error(tmp_path: Path) -> None:
    swap(tmp_path, 1, _default="mode: x")
    with pytest.raises(PolicyError, match=r"_default\.yaml:1: mode"):
        PolicyStore(tmp_path)


def test_a_directory_that_vanishes_and_returns(tmp_path: Path) -> None:
    directory = write(tmp_path / "policies", _default="share: {maximum: '0.5'}")
    store = PolicyStore(directory)
    directory.rename(tmp_path / "away")
    assert store.refresh() is False
    assert store.troubles
    assert maximum(store.current) == "0.5"
    (tmp_path / "away").rename(directory)
    assert store.refresh() is True
    assert not store.troubles


def test_to_look_at_a_volume_costs_the_same_however_many_files_are_in_it(tmp_path: Path) -> None:
    looks = []
    for count in (1, 300):
        directory = tmp_path / str(count)
        directory.mkdir()
        swap(directory, 1, **{f"team-{number}": "mode: warn" for number in range(count)})
        looks.append(calls(PolicyStore(directory)))
    assert looks[0] == looks[1]


def calls(store: PolicyStore) -> int:
    """Count the functions that are called by one look, in Python and in C."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        assert store.refresh() is False
    finally:
        sys.setprofile(None)
    return count


def test_a_plain_directory_is_watched_as_well(tmp_path: Path) -> None:
    store = PolicyStore(write(tmp_path, team="share: {maximum: '0.5'}"))
    write(tmp_path, team="share: {maximum: '0.45'}")
    assert store.refresh() is True
    assert maximum(store.current) == "0.45"
    (tmp_path / "team.yaml").unlink()
    assert store.refresh() is True
    assert maximum(store.current) == "1"


def test_a_swap_in_the_middle_of_reading_never_mixes_two_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap(tmp_path, 1, _default="share: {minimum: '0.1', maximum: '0.2'}", team="mode: warn")
    store = PolicyStore(tmp_path)
    swap(tmp_path, 2, _default="share: {minimum: '0.3', maximum: '0.4'}", team="mode: warn")
    monkeypatch.setattr("policies.reading.directory.read_layer", swapping(read_layer, tmp_path))
    assert store.refresh() is False
    assert maximum(store.current) == "0.2"
    assert store.refresh() is True
    assert maximum(store.current) == "0.6"
    assert not store.troubles


def test_damaged_files_raise_nothing_but_policy_errors(tmp_path: Path) -> None:
    chance = random.Random(11)  # noqa: S311 - a repeatable test
    texts = {file.name: file.read_bytes() for file in SHIPPED.iterdir()}
    words = [b"null", b"[]", b"{}", b'"2"', b"0.5", b"- a", b"true", b"\xff", b"\x00", b"1e999", b"", b": ", b'"']
    for _ in range(300):
        name = chance.choice(sorted(texts))
        damaged = texts[name]
        for _ in range(chance.randint(1, 3)):
            start = chance.randrange(len(damaged))
            damaged = damaged[:start] + chance.choice(words) + damaged[start + chance.randint(0, 9) :]
        (tmp_path / name).write_bytes(damaged)
        assert all(one.file and "\n" not in str(one) for one in problems_of(tmp_path))
        (tmp_path / name).unlink()
