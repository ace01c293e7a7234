import math
import re
from pathlib import Path

import pytest

from plugin.errors import SimulationError
from plugin.gpus.gpu import Gpu
from plugin.simulated.faults import LostFault, MpsFault, NvmlFault, XidFault
from plugin.simulated.gpus import MODELS, simulated_gpus, simulated_mps_faults, simulated_node

MIB = 1024 * 1024


def test_a_count_and_a_model_make_that_many_gpus_on_two_sockets() -> None:
    gpus = simulated_gpus("4xh200")
    assert [(gpu.model, gpu.memory_bytes, gpu.numa_node) for gpu in gpus] == [
        ("H200", 143771 * MIB, node) for node in (0, 0, 1, 1)
    ]
    assert len({gpu.uuid for gpu in gpus}) == 4
    assert all(re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", gpu.uuid) for gpu in gpus)


@pytest.mark.parametrize("model", MODELS)
def test_every_known_model_can_be_simulated_and_is_the_same_each_time(model: str) -> None:
    assert simulated_gpus(f"2x{model}") == simulated_gpus(f"2x{model}")


def test_a_file_lists_the_gpus(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("gpus:\n- {model: T4, numaNode: 1}\n- {model: Next, memoryMib: 7, uuid: GPU-0000000a}\n")
    first, second = simulated_gpus(str(file))
    assert (first.model, first.memory_bytes, first.numa_node) == ("T4", 15360 * MIB, 1)
    assert second == Gpu(
        uuid="GPU-0000000a", index=1, minor=None, model="Next", memory_bytes=7 * MIB, numa_node=None, reserved_bytes=0
    )


@pytest.mark.parametrize(
    ("specification", "sentence"),
    [
        ("2xH999", "unknown model, known are A10, .*H200"),
        ("65xH200", "at most 64 GPUs"),
        ("0xH200", "expected a file, or a count and model such as 2xH200"),
        ("", "expected a file, or a count and model such as 2xH200"),
        ("/nowhere.yaml", "expected a file, or a count and model such as 2xH200"),
    ],
)
def test_a_wrong_specification_is_named(specification: str, sentence: str) -> None:
    with pytest.raises(SimulationError, match=sentence):
        simulated_gpus(specification)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gpus: []", "length >= 1"),
        ("gpus: [{model: T4, memory: 3}]", r"unknown field `memory` - at `\$.gpus\[0\]`"),
        ("gpus: [{model: T4, memoryMib: lots}]", r"Expected .*int.*memoryMib"),
        ("gpus: [{model: Own}]", r"gpus\[0\].memoryMib: needed"),
        ("gpus: [{model: T4, uuid: nonsense}]", "uuid"),
        ("gpus: [{model: T4, uuid: GPU-00000000}, {model: T4, uuid: GPU-00000000}]", "each uuid must be there once"),
        ("gpus: [", "line [12]: invalid YAML"),
        ("a: &a [1]\ngpus: *a", "line 1"),
        ("[" * 10_000, "line 1"),
        ("#" * 70_000, "larger than 65536 bytes"),
        ("\x00", "line 1|unacceptable"),
    ],
)
def test_a_wrong_file_is_named_with_the_field_in_one_line(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(text)
    with pytest.raises(SimulationError, match=sentence) as rejection:
        simulated_gpus(str(file))
    assert str(file) in str(rejection.value)
    assert "\n" not in str(rejection.value)


TWO_GPUS = "gpus: [{model: T4, uuid: GPU-00000000}, {model: T4, uuid: GPU-00000001}]\n"
SCRIPT = (
    TWO_GPUS
    + """
faults:
- {at: 60, nvml: fails, recovers: 90.5}
- {at: 10, gpu: 0, xid: 79, recovers: 40}
- {at: 5, gpu: 1, xid: 31}
- {at: 20, gpu: 1, lost: true, recovers: 50}
- {at: 30, gpu: 0, mps: server 4711 is in FAULT, recovers: 35}
"""
)


def test_a_file_scripts_faults_by_their_beginning(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(SCRIPT)
    assert simulated_node(str(file)).faults == (
        XidFault(at_seconds=5, recovers_seconds=math.inf, gpu_uuid="GPU-00000001", xid=31),
        XidFault(at_seconds=10, recovers_seconds=40, gpu_uuid="GPU-00000000", xid=79),
        LostFault(at_seconds=20, recovers_seconds=50, gpu_uuid="GPU-00000001"),
        MpsFault(at_seconds=30, recovers_seconds=35, gpu_uuid="GPU-00000000", why="server 4711 is in FAULT"),
        NvmlFault(at_seconds=60, recovers_seconds=90.5),
    )


def test_gpus_by_model_have_no_faults() -> None:
    assert simulated_node("2xT4").faults == ()


@pytest.mark.parametrize(
    ("seconds", "faults"),
    [
        (29.9, {}),
        (30, {"GPU-00000000": "server 4711 is in FAULT"}),
        (34.9, {"GPU-00000000": "server 4711 is in FAULT"}),
        (35, {}),
    ],
)
def test_an_mps_daemon_is_at_fault_from_the_beginning_until_it_recovers(
    tmp_path: Path, seconds: float, faults: dict[str, str]
) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(SCRIPT)
    assert simulated_mps_faults(simulated_node(str(file)), seconds) == faults


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("{gpu: 0, xid: 79}", r"missing required field `at` - at `\$.faults\[1\]`"),
        ("{at: 1, gpu: 0, xid: 79, recover: 5}", r"unknown field `recover` - at `\$.faults\[1\]`"),
        ("{at: -1, gpu: 0, xid: 79}", r">= 0.0 - at `\$.faults\[1\].at`"),
        ("{at: 1e400, gpu: 0, xid: 79}", r"<= 604800.0 - at `\$.faults\[1\].at`"),
        ("{at: soon, gpu: 0, xid: 79}", r"Expected `float`, got `str` - at `\$.faults\[1\].at`"),
        ("{at: 1, gpu: 0, xid: 0}", r">= 1 - at `\$.faults\[1\].xid`"),
        ("{at: 1, gpu: 0, nvml: works}", r"'works' - at `\$.faults\[1\].nvml`"),
        ("{at: 1, gpu: 2, xid: 79}", r"faults\[1\].gpu: expected 0 to 1, one of gpus, got 2"),
        ("{at: 1, gpu: -1, xid: 79}", r"faults\[1\].gpu: expected 0 to 1, one of gpus, got -1"),
        ("{at: 1, xid: 79}", r"faults\[1\].gpu: expected the number of a GPU, got none"),
        ("{at: 1, gpu: 0, nvml: fails}", r"faults\[1\].gpu: expected none beside nvml"),
        ("{at: 9, gpu: 0, xid: 79, recovers: 9}", r"faults\[1\].recovers: expected more than at, which is 9, got 9"),
        ("{at: 9, gpu: 0}", r"faults\[1\]: expected one of xid, lost, mps, nvml, got none"),
        ("{at: 9, gpu: 0, xid: 79, lost: true}", r"faults\[1\]: expected one of .*, got xid and lost"),
        ("{at: 9, gpu: 0, lost: false}", r"faults\[1\].lost: expected true, got false"),
        ('{at: 9, gpu: 0, mps: ""}', r"length >= 1 - at `\$.faults\[1\].mps`"),
        ('{at: 9, gpu: 0, mps: "a\\nb"}', r"faults\[1\].mps: expected one printable line, got 'a\\nb'"),
    ],
)
def test_a_wrong_fault_is_named_with_its_field_in_one_line(tmp_path: Path, entry: str, sentence: str) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(f"{TWO_GPUS}faults:\n- {{at: 1, gpu: 0, xid: 79}}\n- {entry}\n")
    with pytest.raises(SimulationError, match=sentence) as rejection:
        simulated_gpus(str(file))
    assert str(file) in str(rejection.value)
    assert "\n" not in str(rejection.value)


def test_more_faults_than_anybody_scripts_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(f"{TWO_GPUS}faults:\n" + "- {at: 1, gpu: 0, xid: 79}\n" * 1001)
    with pytest.raises(SimulationError, match="length <= 1000"):
        simulated_gpus(str(file))
