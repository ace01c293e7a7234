"""By which number `indexes` count a GPU, whatever NVML counts when a card has died or has come."""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.gpu import Gpu, MigInstance
from plugin.gpus.numbers import FILE, GpuNumbers
from policies.nodes import NodeRule

RULES = (NodeRule(indexes=(0, 7), strategy="none"), NodeRule(strategy="mps"))
OTHERS = (NodeRule(indexes=(6,), strategy="none"), NodeRule(strategy="mps"))
NONE = (NodeRule(strategy="mps"),)


def gpu(uuid: str, index: int, instance: MigInstance | None = None) -> Gpu:
    return Gpu(
        uuid=uuid, index=index, minor=index, model="H200", memory_bytes=100 << 30, numa_node=None, instance=instance
    )


def counted(numbers: GpuNumbers, uuids: str) -> str:
    """Say the number of each GPU, of those that NVML counts in this order."""
    return " ".join(f"{uuid}{numbers.of(gpu(uuid, index))}" for index, uuid in enumerate(uuids))


def test_a_gpu_keeps_the_number_that_nvml_counted_it_by_at_first(tmp_path: Path) -> None:
    numbers = GpuNumbers(tmp_path, RULES)
    assert counted(numbers, "abcd") == "a0 b1 c2 d3"
    assert counted(numbers, "acd") == "a0 c2 d3"


def test_it_does_so_in_the_next_run_too_and_that_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    counted(GpuNumbers(tmp_path, RULES), "abcd")
    with caplog.at_level(logging.WARNING):
        assert counted(GpuNumbers(tmp_path, RULES), "acd") == "a0 c2 d3"
    told = [(one.message, vars(one)["gpu"], vars(one)["number"]) for one in caplog.records]
    assert told == [("a GPU keeps its number", "c", 2), ("a GPU keeps its number", "d", 3)]
    assert (
        f"NVML counts it as 1 now; to have it counted anew, change `indexes` or remove {tmp_path / FILE}"
        in (vars(caplog.records[0])["reason"])
    )


def test_a_card_in_the_place_of_another_has_its_number(tmp_path: Path) -> None:
    counted(GpuNumbers(tmp_path, RULES), "abc")
    assert counted(GpuNumbers(tmp_path, RULES), "axc") == "a0 x1 c2"


@pytest.mark.parametrize("changed", [OTHERS, (*RULES, *OTHERS)])
def test_where_indexes_change_gpus_are_counted_anew(tmp_path: Path, changed: tuple[NodeRule, ...]) -> None:
    counted(GpuNumbers(tmp_path, RULES), "abc")
    assert counted(GpuNumbers(tmp_path, changed), "bc") == "b0 c1"
    assert counted(GpuNumbers(tmp_path, changed), "xbc") == "x0 b0 c1"


def test_what_else_changes_in_nodes_counts_no_gpu_anew(tmp_path: Path) -> None:
    counted(GpuNumbers(tmp_path, RULES), "abc")
    whole = (NodeRule(indexes=(0, 7), strategy="whole"), *NONE)
    assert counted(GpuNumbers(tmp_path, whole), "bc") == "b1 c2"


def test_without_indexes_nothing_is_kept_and_what_was_counts_no_more(tmp_path: Path) -> None:
    counted(GpuNumbers(tmp_path, RULES), "abc")
    assert counted(GpuNumbers(tmp_path, NONE), "bc") == "b0 c1"
    assert list(tmp_path.iterdir()) == []
    assert counted(GpuNumbers(tmp_path, RULES), "c") == "c0"


def test_a_mig_instance_has_the_number_of_its_gpu(tmp_path: Path) -> None:
    counted(GpuNumbers(tmp_path, RULES), "ab")
    part = MigInstance(profile="1g.18gb", parent_uuid="b", gpu_instance=1, compute_instance=0)
    assert GpuNumbers(tmp_path, RULES).of(gpu("MIG-1", 0, part)) == 1


def test_two_parts_that_run_at_once_keep_what_either_sees(tmp_path: Path) -> None:
    one, other = GpuNumbers(tmp_path, RULES), GpuNumbers(tmp_path, RULES)
    assert (counted(one, "ab"), counted(other, "abc"), counted(one, "abcd")) == ("a0 b1", "a0 b1 c2", "a0 b1 c2 d3")
    assert counted(GpuNumbers(tmp_path, RULES), "d") == "d3"


def test_a_part_with_indexes_of_before_takes_nothing_from_one_with_newer_ones(tmp_path: Path) -> None:
    old = GpuNumbers(tmp_path, RULES)
    counted(old, "ab")
    counted(GpuNumbers(tmp_path, OTHERS), "ab")
    assert counted(old, "axb") == "a0 x1 b1"
    assert counted(GpuNumbers(tmp_path, OTHERS), "b") == "b1"


@pytest.mark.parametrize("content", ["", "{", '{"indexes": [[0, 7]]}', '{"indexes": 1, "numbers": {"b": 9}}'])
def test_a_file_that_says_nothing_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert counted(GpuNumbers(tmp_path, RULES), "ab") == "a0 b1"
    assert counted(GpuNumbers(tmp_path, RULES), "b") == "b1"


@pytest.mark.parametrize("rules", [RULES, NONE])
def test_where_nothing_can_be_kept_the_log_says_so_and_nvml_counts(
    tmp_path: Path, rules: tuple[NodeRule, ...], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        assert counted(GpuNumbers(tmp_path / "file", rules), "ab") == "a0 b1"
    assert [vars(one)["reason"].partition(f"{FILE}: ")[2][:15] for one in caplog.records] == ["Not a directory"]


def test_without_a_directory_the_numbers_are_those_of_the_run() -> None:
    numbers = GpuNumbers(None, RULES)
    assert (counted(numbers, "abc"), counted(numbers, "bc")) == ("a0 b1 c2", "b1 c2")
    assert counted(GpuNumbers(None, RULES), "bc") == "b0 c1"


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcdefgh"), min_size=1), st.sampled_from([0, 1, 2])), max_size=20))
def test_whatever_cards_vanish_and_return_and_whichever_part_starts_a_number_stays(
    steps: list[tuple[set[str], int]],
) -> None:
    with TemporaryDirectory() as directory:
        parts = [GpuNumbers(Path(directory), RULES) for _ in range(2)]
        first: dict[str, int] = {}
        for present, started in steps:
            if started < len(parts):
                parts[started] = GpuNumbers(Path(directory), RULES)
            seen = "".join(sorted(present))
            for part in parts:
                for index, uuid in enumerate(seen):
                    assert part.of(gpu(uuid, index)) == first.setdefault(uuid, index)
