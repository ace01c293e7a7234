import re
from pathlib import Path

import pytest

from plugin.errors import SimulationError
from plugin.pool import Gpu
from plugin.simulation import MODELS, simulated_gpus

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
    assert second == Gpu(uuid="GPU-0000000a", index=1, minor=None, model="Next", memory_bytes=7 * MIB, numa_node=None)


@pytest.mark.parametrize(
    ("specification", "sentence"),
    [
        ("2xH999", "unknown model, known are A10, .*H200"),
        ("65xH200", "at most 64 GPUs"),
        ("0xH200", "neither a file nor like 2xH200"),
        ("", "neither a file nor like 2xH200"),
        ("/nowhere.yaml", "neither a file nor like 2xH200"),
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
        ("gpus: [", "line [12]: not YAML"),
        ("a: &a [1]\ngpus: *a", "line 1"),
        ("[" * 10_000, "line 1"),
        ("#" * 70_000, "larger than 65536 bytes"),
        ("\x00", "line 1|unacceptable"),
    ],
)
def test_a_wrong_file_is_named_with_the_field_in_one_line(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(text)
    with pytest.raises(SimulationError, match=sentence) as refusal:
        simulated_gpus(str(file))
    assert str(file) in str(refusal.value)
    assert "\n" not in str(refusal.value)
