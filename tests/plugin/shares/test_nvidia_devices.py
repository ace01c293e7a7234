"""Which of NVIDIA's CDI devices are found in the directories of a node, whatever else lies there."""

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from plugin.shares.nvidia_devices import NvidiaDevices
from tests.plugin.shares.test_nvidia_specification import A, B, both, device, specification, written

BOTH = {A.uuid: f"nvidia.com/gpu={A.uuid}", B.uuid: f"nvidia.com/gpu={B.uuid}"}
DRIVER = "580.95.05"


class Node:
    """The two directories of a node, and what is known of them."""

    def __init__(self, directory: Path) -> None:
        self.static, self.dynamic = directory / "etc-cdi", directory / "run-cdi"
        for one in (self.static, self.dynamic):
            one.mkdir()
        self.devices = NvidiaDevices((self.static, self.dynamic))

    def has(self, name: str, of: Any, *, static: bool = False) -> Path:
        path = (self.static if static else self.dynamic) / name
        content = of if isinstance(of, bytes) else written(of, as_json=name.endswith(".json"))
        new = path.with_name(".new")
        new.write_bytes(content)
        new.replace(path)
        return path

    def found(self, *, driver: str = DRIVER) -> dict[str, str]:
        self.devices.look((A, B), driver=driver)
        return dict(self.devices.names)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("name", ["nvidia.yaml", "nvidia.com-gpu.json", "nvidia.com-gpu_1.yaml"])
def test_a_specification_is_found_in_either_directory_in_either_form(node: Node, name: str, *, static: bool) -> None:
    node.has(name, both(), static=static)
    assert node.found() == BOTH
    assert node.devices.told == "with NVIDIA's own CDI device of each GPU"


def test_specifications_of_ours_do_not_count_however_many_there_are(node: Node) -> None:
    for number in range(200):
        node.has(f"gpu-share-claim_{number:03d}.json", specification(device(A.uuid, 7)))
    node.has("nvidia.yaml", both())
    assert node.found() == BOTH


def test_without_one_it_says_who_must_bring_the_driver(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert node.found() == {}
    assert node.devices.told == (
        f"no CDI device nvidia.com/gpu for any GPU in {node.static} and {node.dynamic}: "
        "NVIDIA's container runtime must bring the driver"
    )
    node.found()
    assert [(one.message, one.levelname) for one in caplog.records] == [("NVIDIA's CDI devices", "INFO")]


def test_directories_that_are_not_there_have_none(tmp_path: Path) -> None:
    devices = NvidiaDevices((tmp_path / "a", tmp_path / "b"))
    devices.look((A,), driver="")
    assert devices.names == {}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "nvidia.yaml").write_bytes(written(both()))
    devices.look((A,), driver="")
    assert devices.names == {A.uuid: BOTH[A.uuid]}


def test_what_appears_changes_and_goes_is_seen_at_the_next_look(node: Node) -> None:
    assert node.found() == {}
    path = node.has("nvidia.yaml", both())
    assert node.found() == BOTH
    node.has("nvidia.yaml", specification(device(A.uuid, 0)))
    assert node.found() == {A.uuid: BOTH[A.uuid]}
    assert "for 1 of 2 GPUs" in node.devices.told
    path.unlink()
    assert node.found() == {}


def test_nothing_is_read_again_while_nothing_changes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.has("nvidia.yaml", both())
    node.found()
    monkeypatch.setattr("plugin.shares.nvidia_devices.read_file", None)
    assert node.found() == BOTH


def test_half_a_file_is_no_device_until_it_is_whole(node: Node) -> None:
    whole = written(both())
    node.has("nvidia.yaml", whole[: len(whole) // 2])
    assert node.found() == {}
    assert "no CDI specification" in node.devices.told
    node.has("nvidia.yaml", whole)
    assert node.found() == BOTH


def test_a_later_directory_is_before_an_earlier_one_as_in_container_runtimes(node: Node) -> None:
    node.has("nvidia.yaml", both(), static=True)
    node.has("nvidia.yaml", both())
    assert node.found() == BOTH
    # The runtime takes the device of the later directory, and that is another GPU's.
    node.has("nvidia.yaml", specification(device(A.uuid, 1)))
    assert A.uuid not in node.found()


def test_a_device_that_two_files_of_a_directory_have_is_a_device_of_neither(node: Node) -> None:
    node.has("nvidia.yaml", both())
    node.has("other.json", specification(device(A.uuid, 0)))
    assert node.found() == {B.uuid: BOTH[B.uuid]}
    assert f"nvidia.com/gpu={A.uuid} is in two files of one directory" in node.devices.told


def test_a_specification_of_another_driver_is_not_used(node: Node) -> None:
    node.has("nvidia.yaml", both())
    assert node.found(driver="595.10.02") == {}
    assert f"{node.dynamic}/nvidia.yaml is of driver {DRIVER}, and 595.10.02 runs" in node.devices.told
    assert node.found(driver="") == BOTH
    assert node.found() == BOTH


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path)]
)
def test_what_is_no_file_does_no_harm(node: Node, make: Any) -> None:
    make(node.dynamic / "a.yaml")
    node.has("nvidia.yaml", both())
    assert node.found() == BOTH
    assert str(node.dynamic / "a.yaml") in node.devices.told


def test_a_file_whose_name_is_no_text_is_told_of_as_one(node: Node) -> None:
    node.has(os.fsdecode(b"\xff.yaml"), b"{")
    node.found()
    assert "\\udcff.yaml: no CDI specification" in node.devices.told
    assert node.devices.told.encode().decode() == node.devices.told


def test_a_link_to_a_specification_is_followed_as_container_runtimes_do(node: Node) -> None:
    real = node.has("nvidia.conf", both())
    (node.static / "nvidia.yaml").symlink_to(real)
    assert node.found() == BOTH
    real.write_bytes(written(specification(device(A.uuid, 0))))
    assert node.found() == {A.uuid: BOTH[A.uuid]}


def test_files_with_other_endings_are_not_read(node: Node) -> None:
    for name in ("nvidia.yml", "nvidia.yaml.bak", "nvidia"):
        node.has(name, both())
    assert node.found() == {}


def test_more_files_than_any_node_has_are_not_read(node: Node) -> None:
    for number in range(300):
        (node.dynamic / f"{number:03}.yaml").touch()
    node.has("zzz.yaml", both())
    assert node.found() == {}
    assert "301 files, of which 256 are read" in node.devices.told
