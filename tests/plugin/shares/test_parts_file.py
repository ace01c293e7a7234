import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.gpu import VGpuId
from plugin.shares.parts_file import FILE, Checkpoint, CheckpointError, Held, parts, read_parts, write_parts

HELD = {
    VGpuId("GPU-a", 0): Held(resource="gpu-share.dev/vgpu", of=10, named=True),
    VGpuId("GPU-a", 3): Held(resource="gpu-share.dev/vgpu", of=20, gpu="GPU-b"),
    VGpuId("GPU-a", 4): Held(resource="gpu-share.dev/vgpu", of=20, gpu=None),
    VGpuId("GPU-a", 5): Held(resource="gpu-share.dev/vgpu", of=20, gpu="GPU-b", also=("GPU-a", "GPU-c")),
    VGpuId("GPU-b", 0): Held(resource="example.com/vgpu", of=10, named=True),
    VGpuId("GPU-b", 1): Held(resource="example.com/vgpu", of=10, named=True, by_cdi=True),
}


def test_what_was_written_is_read_by_the_next_plugin(tmp_path: Path) -> None:
    write_parts(tmp_path, parts(HELD.items(), vgpus_per_gpu=20, boot_id="this", allocations=7))
    assert read_parts(tmp_path) == Checkpoint(20, HELD, "this", 7)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_vgpu_that_is_not_in_it_is_of_the_number_at_that_time(tmp_path: Path) -> None:
    write_parts(tmp_path, parts(HELD.items(), vgpus_per_gpu=20))
    found = read_parts(tmp_path)
    assert found is not None
    assert [found.number_of(VGpuId("GPU-a", index)) for index in (0, 1)] == [10, 20]


def test_there_is_nothing_where_nobody_has_written(tmp_path: Path) -> None:
    assert read_parts(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"vgpus_per_gpu": 0, "held": []}',
        '{"vgpus_per_gpu": 10.5, "held": []}',
        '{"vgpus_per_gpu": 10, "held": [{"resource": "r", "gpu": "g", "of": 0, "named": true, "indexes": [0]}]}',
        '{"vgpus_per_gpu": 10, "held": [{"resource": "r", "gpu": "g", "of": 1, "named": true, "indexes": [-1]}]}',
        '{"vgpus_per_gpu": 10, "held": [{"resource": "r", "gpu": "g", "of": 1, "named": true, "indexes": [0, 0]}]}',
        "[" * 100_000,
        " " * (1 << 20) + "{}",
    ],
)
def test_what_no_plugin_has_written_is_believed_in_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(CheckpointError):
        read_parts(tmp_path)


def test_a_link_or_a_pipe_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"vgpus_per_gpu": 10, "held": []}')
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError):
        read_parts(tmp_path)
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(CheckpointError, match="not a file"):
        read_parts(tmp_path)


@given(
    held=st.dictionaries(
        st.builds(VGpuId, st.text(min_size=1, max_size=5), st.integers(0, 300)),
        st.builds(
            Held,
            resource=st.text(max_size=5),
            of=st.integers(1, 100),
            named=st.booleans(),
            container=st.text(max_size=5),
            kept=st.booleans(),
            forgotten=st.booleans(),
            gpu=st.none() | st.text(max_size=5),
            pod=st.integers(0, 1 << 53),
            call=st.integers(0, 1 << 53),
            before_boot=st.booleans(),
        ),
        max_size=20,
    )
)
def test_whatever_is_held_comes_back(tmp_path_factory: pytest.TempPathFactory, held: dict[VGpuId, Held]) -> None:
    directory = tmp_path_factory.mktemp("parts")
    write_parts(directory, parts(held.items(), vgpus_per_gpu=7))
    assert read_parts(directory) == Checkpoint(7, held)


def test_as_many_containers_as_a_node_can_have_come_back_however_long_their_names_are(tmp_path: Path) -> None:
    name = f"{'n' * 63}/{'p' * 253}/{'c' * 63}"
    held = {
        VGpuId("GPU-254812a7-d2e6-5a9f-ae2e-a1271052c43d", index): one(
            named=True, container=f"{index}{name}", call=index
        )
        for index in range(5600)
    }
    write_parts(tmp_path, parts(held.items(), vgpus_per_gpu=100))
    assert read_parts(tmp_path) == Checkpoint(100, held)


def one(**more: Any) -> Held:
    return Held(resource="gpu-share.dev/vgpu", of=10, **more)


@pytest.mark.parametrize(
    ("held", "named", "largest"),
    [
        ({}, [], {}),
        ({0: one(), 1: one()}, [], {"GPU-a": Fraction(2, 10)}),  # of one pod, or of two: nobody knows
        ({0: one(pod=1), 1: one(pod=1), 2: one(pod=2)}, [], {"GPU-a": Fraction(2, 10)}),
        ({0: one(named=True), 1: one(named=True)}, [0, 1], {}),  # of no init container
        ({0: one(pod=1, named=True), 1: one(pod=1)}, [0], {"GPU-a": Fraction(2, 10)}),  # had what is named, too
        ({0: one(pod=1, named=True), 1: one(pod=1)}, [], {"GPU-a": Fraction(2, 10)}),  # the file says when it has ended
        ({0: one(pod=1, named=True), 1: one(pod=2, named=True)}, [1], {"GPU-a": Fraction(1, 10)}),
        ({0: one(), 1: one(gpu="GPU-b")}, [], {"GPU-a": Fraction(1, 10), "GPU-b": Fraction(1, 10)}),
        ({0: one(pod=1, named=True, also=("GPU-b",))}, [0], {"GPU-b": Fraction(1, 10)}),
        ({0: one(), 1: one(gpu=None)}, [], None),
        ({0: one()}, [7], None),
    ],
)
def test_a_container_that_the_kubelet_does_not_name_may_hold_all_that_its_pod_has(
    held: dict[int, Held], named: list[int], largest: dict[str, Fraction] | None
) -> None:
    checkpoint = Checkpoint(10, {VGpuId("GPU-a", index): one for index, one in held.items()})
    assert checkpoint.unnamed_parts(VGpuId("GPU-a", index) for index in named) == largest


@pytest.mark.parametrize(("why", "on"), [({"forgotten": True}, ["GPU-a"]), ({"outlives": True}, ["GPU-a"]), ({}, [])])
def test_what_the_kubelet_has_lost_or_taken_back_too_early_is_not_known_to_have_ended(
    why: dict[str, bool], on: list[str]
) -> None:
    held = {VGpuId("GPU-a", index): one(named=True, pod=1, **why) for index in range(2)}
    assert Checkpoint(10, held).unnamed_on(()) == frozenset(on)
