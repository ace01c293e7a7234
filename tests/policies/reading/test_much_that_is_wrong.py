"""Files with more problems than anybody reads cost neither memory nor time, and say that there are more."""

import tracemalloc
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import pytest

from policies.errors import PolicyError
from policies.grant import Denied
from policies.reading.directory import MOST_FILES
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import PolicyStore, load
from policies.reading.told import MOST_OF_A_FILE, MOST_TOLD
from tests.policies.pods import decided, pod
from tests.policies.reading.volume import maximum, write

WORDS = ["".join(letters) for letters in product(ascii_lowercase, repeat=3)]
MORE = "at least one more problem is not listed: correct the others first"


def unknown(count: int) -> str:
    return "{" + ",".join(reversed(WORDS[:count])) + "}\n"


def nested(count: int) -> str:
    paths = ("/" + "/".join("x" * (depth + 1)) for depth in range(count))
    return "hostPaths: [" + ", ".join(f"{{path: {path}, writable: true}}" for path in paths) + "]\n"


@pytest.mark.parametrize(
    "text",
    [
        unknown(3000),
        nested(90),
        "placement: {tolerations: [" + "{operator: x}," * 3000 + "]}",
        "devices: [" + "x y," * 90 + "]",
        "devices: [" + ",".join(f"h{number}" for number in range(90)) + "]",
    ],
    ids=["unknown fields", "paths in paths", "items", "devices", "unknown devices"],
)
def test_a_file_tells_some_of_its_problems_and_that_there_are_more(tmp_path: Path, text: str) -> None:
    with pytest.raises(PolicyError) as raised:
        load(write(tmp_path, team=text))
    *told, last = raised.value.problems
    assert len(told) == MOST_OF_A_FILE
    assert last.message == MORE
    assert MORE not in {one.message for one in told}


def test_a_file_with_as_many_problems_as_are_told_has_no_more(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as raised:
        load(write(tmp_path, team=unknown(MOST_OF_A_FILE)))
    assert {one.message == MORE for one in raised.value.problems} == {False}
    assert len(raised.value.problems) == MOST_OF_A_FILE


def test_the_denial_of_a_pod_names_the_first_problem_of_the_file(tmp_path: Path) -> None:
    decision = decided(pod("0.2"), PolicyStore(write(tmp_path, team=unknown(3000))).current, "team")
    assert isinstance(decision, Denied)
    assert WORDS[2999] in decision.deny.message


def test_what_nobody_is_told_takes_no_memory(tmp_path: Path) -> None:
    write(tmp_path, **{f"team-{number}": f"{unknown(10_000)}#{number}" for number in range(4)})
    tracemalloc.start()
    try:
        store = PolicyStore(tmp_path)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(store.troubles) == 4 * (MOST_OF_A_FILE + 1)
    assert kept < 512 * 1024


def test_of_many_broken_files_all_are_denied_some_are_told_and_what_is_left_is_told_later(tmp_path: Path) -> None:
    count = MOST_TOLD + 100
    names = [f"team-{number:03d}" for number in range(count)]
    store = PolicyStore(write(tmp_path, **dict.fromkeys(names, "mode: x\na: 1\nb: 1\n")))
    *told, last = store.troubles
    assert len(told) == MOST_TOLD
    assert str(count) not in last.problem.message
    assert "more problems, in " in last.problem.message
    assert store.broken_files == count
    assert all(store.current.of(name).broken for name in names)
    write(tmp_path, **dict.fromkeys(names[:-1], "mode: warn\n"))
    assert store.refresh() is True
    assert [(one.policy, one.problem.line) for one in store.troubles] == [(names[-1], line) for line in (1, 2, 3)]
    assert store.broken_files == 1


def test_what_is_wrong_with_the_default_is_among_what_is_told(tmp_path: Path) -> None:
    broken = {f"0{number}": "mode: x\n" for number in range(MOST_TOLD + 1)}
    store = PolicyStore(write(tmp_path, _default="mode: x\n", **broken), needs=(CLUSTER_FILE,))
    assert "_default" in {one.policy for one in store.troubles}


@pytest.fixture
def too_many(tmp_path: Path) -> Path:
    return write(tmp_path / "many", **{f"team-{number}": "" for number in range(MOST_FILES + 1)})


def test_more_files_than_are_read_are_one_problem_of_the_directory(too_many: Path) -> None:
    with pytest.raises(PolicyError, match=rf"^{too_many}: expected at most 4000 policy files, got 4001: remove"):
        PolicyStore(too_many)


def test_a_node_starts_beside_more_files_than_are_read_and_knows_no_policy(too_many: Path) -> None:
    write(too_many, _cluster="vgpusPerGpu: 20\n")
    store = PolicyStore(too_many, needs=(CLUSTER_FILE,))
    assert store.current.cluster.vgpus_per_gpu == 20
    assert store.current.of("team-1").broken is not None
    assert store.refresh() is False
    (too_many / "team-1.yaml").unlink()
    (too_many / "team-2.yaml").unlink()
    assert store.refresh() is True
    assert store.current.of("team-1").broken is None


def test_the_last_good_policies_stay_when_more_files_come_than_are_read(tmp_path: Path) -> None:
    store = PolicyStore(write(tmp_path, team="share: {maximum: '0.3'}\n"))
    write(tmp_path, **{f"other-{number}": "" for number in range(MOST_FILES)})
    assert store.refresh() is False
    assert maximum(store.current) == "0.3"
    (trouble,) = store.troubles
    assert trouble.effect == "the last good policies stay in force"
    assert store.refresh() is False
    assert store.troubles == (trouble,)
