"""The file in which the plugin says how its GPUs are."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugin.health.state import (
    NODE_FILE,
    ApplicationFault,
    Fault,
    GpuHealth,
    NodeHealth,
    read_node_health,
    write_node_health,
)

LARGEST_BYTES = 16 * 1024 * 1024
FAULT = Fault(
    source="xid",
    why="XID 79",
    since="2026-01-01T00:00:00Z",
    comes_back="once the GPU has been reset",
    xid=79,
    energy_mj=10**15,
)
NODE = NodeHealth(
    boot_id="one",
    heartbeat_seconds=12.5,
    pid=7,
    driver="580.95.05",
    gpus=(
        GpuHealth(
            uuid="GPU-0", index=0, model="H200", resource="r/vgpu", since="2026-01-01T00:00:00Z", faults=(FAULT,)
        ),
        GpuHealth(
            uuid="GPU-1",
            index=1,
            model="H200",
            resource="r/vgpu",
            since="2026-01-01T00:00:00Z",
            application_fault=ApplicationFault(xid=31, at="2026-01-01T00:00:00Z", tenants=("team/pod/main",)),
        ),
    ),
    skipped=("GPU 2 of 3 cannot be shared",),
)
SMALLEST = '{"boot_id": "one", "heartbeat_seconds": 1, "pid": 1, "driver": ""}'


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_node_health(tmp_path, NODE)
    assert read_node_health(tmp_path) == NODE
    assert {path.name for path in tmp_path.iterdir()} == {NODE_FILE, f".{NODE_FILE}.reserve"}


def test_a_gpu_is_healthy_without_a_fault_whatever_its_programs_did() -> None:
    assert [gpu.healthy for gpu in NODE.gpus] == [False, True]


def test_what_a_newer_version_adds_is_ignored(tmp_path: Path) -> None:
    (tmp_path / NODE_FILE).write_text(SMALLEST[:-1] + ', "added": {"later": [1]}}')
    assert read_node_health(tmp_path) == NodeHealth(boot_id="one", heartbeat_seconds=1, pid=1, driver="")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"null",
        b"[" * 500_000,
        SMALLEST.encode()[:-1] + b', "added": ' + b"[" * 500_000,
        SMALLEST.replace("1,", "1e999,").encode(),
        SMALLEST.replace('"one"', '"\\ud800"').encode(),
        SMALLEST.replace('"one"', '"\xff"').encode("latin-1"),
        SMALLEST.replace('"pid": 1', '"pid": ' + "9" * 5000).encode(),
        SMALLEST.encode()[:-1] + b', "gpus": [{"uuid": "a"}]}',
        SMALLEST.encode() + b" " * LARGEST_BYTES,
    ],
)
def test_what_no_plugin_can_have_written_is_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NODE_FILE).write_bytes(content)
    assert read_node_health(tmp_path) is None


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    (tmp_path / NODE_FILE).write_bytes(SMALLEST.encode().ljust(LARGEST_BYTES))
    assert read_node_health(tmp_path) is not None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write_node_health(tmp_path, NODE)
    (tmp_path / NODE_FILE).rename(tmp_path / "elsewhere")
    (tmp_path / NODE_FILE).symlink_to(tmp_path / "elsewhere")
    assert read_node_health(tmp_path) is None


def test_nobody_waits_for_a_pipe_a_directory_or_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert read_node_health(tmp_path) is None
    os.mkfifo(tmp_path / NODE_FILE)
    assert read_node_health(tmp_path) is None
    (tmp_path / NODE_FILE).unlink()
    (tmp_path / NODE_FILE).mkdir()
    assert read_node_health(tmp_path) is None
    assert read_node_health(tmp_path / NODE_FILE / "deeper") is None


def test_a_pipe_is_not_read_whatever_is_in_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NODE_FILE)
    pipe = os.open(tmp_path / NODE_FILE, os.O_RDWR)
    try:
        os.write(pipe, SMALLEST.encode())
        assert read_node_health(tmp_path) is None
    finally:
        os.close(pipe)


@settings(deadline=None)  # a file for each
@given(begin=st.integers(0, 700), end=st.integers(0, 700), damage=st.binary(max_size=20))
def test_no_damage_to_the_file_raises(
    tmp_path_factory: pytest.TempPathFactory, begin: int, end: int, damage: bytes
) -> None:
    directory = tmp_path_factory.getbasetemp()
    write_node_health(directory, NODE)
    written = (directory / NODE_FILE).read_bytes()
    (directory / NODE_FILE).write_bytes(written[:begin] + damage + written[end:])
    found = read_node_health(directory)
    assert found is None or isinstance(found, NodeHealth)
