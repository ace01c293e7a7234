"""A name that an entry of `_cluster.yaml` shares with a built-in framework lifts none of the built-in one's checks."""

from typing import Any

import pytest

from policies.errors import Problem
from policies.reading.layers import read_layer
from tests.policies.pods import container, denied, environment, mutated, only_container, pod, policies

VLLM = "vllm/vllm-openai:v0.11.0"
SHARED = "PYTORCH_CUDA_ALLOC_CONF"


def problems_of(text: str) -> list[Problem]:
    problems: list[Problem] = []
    read_layer("_cluster.yaml", text, problems)
    return problems


def entry(spelling: str) -> str:
    """An entry that has *spelling* for its memory."""
    return (
        f"{{name: acme, images: [acme/torch], programs: [acme-serve], source: s, memory: {{spellings: [{spelling}]}}}}"
    )


def beside(spelling: str) -> Any:
    """Policies with such an entry, under time-slicing."""
    return policies("strategy: time-slicing", f"frameworks: [{entry(spelling)}]")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ('{argument: --gpu-memory-utilization, value: "{percent}"}', "--gpu-memory-utilization"),
        ('{argument: --gpu_memory_utilization, value: "{percentLeft}"}', "--gpu_memory_utilization"),
        ('{variable: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "{percent}"}', "XLA_PYTHON_CLIENT_MEM_FRACTION"),
        ("{variable: CUPY_GPU_MEMORY_LIMIT}", "CUPY_GPU_MEMORY_LIMIT"),
        (f"{{variable: {SHARED}}}", SHARED),
        (f'{{variable: {SHARED}, value: "acme:{{fraction}}", separator: ";"}}', SHARED),
        (f'{{variable: {SHARED}, value: "per_process_memory_fraction:{{percent}}", separator: ","}}', SHARED),
    ],
)
def test_a_name_that_another_framework_has_for_a_value_of_another_form_is_a_fault(spelling: str, name: str) -> None:
    (problem,) = problems_of(f"frameworks: [{entry(spelling)}]")
    assert problem.field == "frameworks[0].memory.spellings[0]"
    assert f"has {name} for a value of another form" in problem.message


def test_so_it_is_of_two_entries_and_not_of_one_that_replaces_the_other() -> None:
    percent = '{argument: --mem, value: "{percent}"}'
    two = f"frameworks: [{entry('{argument: --mem}')}, {entry(percent).replace('acme', 'other')}]"
    (problem,) = problems_of(two)
    assert problem.field == "frameworks[1].memory.spellings[0]"
    instead = '{argument: --gpu-memory-utilization, value: "{percent}"}'
    assert problems_of(f"frameworks: [{entry(instead).replace('name: acme', 'name: vllm')}]") == []


@pytest.mark.parametrize("unit", ["percent", "percentLeft"])
def test_an_abbreviation_is_judged_as_that_of_the_framework_that_runs(unit: str) -> None:
    by = beside(f'{{argument: --gpu-memory, value: "{{{unit}}}"}}')
    text = container(image=VLLM, command=["sh", "-c", "exec vllm serve x --gpu-memory 0.9"])
    assert denied(pod("0.2", text), by).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("image", ["mine:1", "acme/torch:1", "pytorch/pytorch:2.10"])
@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("per_process_memory_fraction:0.9", "per_process_memory_fraction:0.2"),
        ("acme_fraction:0.9", "acme_fraction:0.2"),
        ("acme_fraction:0.9,per_process_memory_fraction:0.9", "acme_fraction:0.2,per_process_memory_fraction:0.2"),
    ],
)
def test_of_a_variable_of_several_settings_each_is_lowered(image: str, value: str, after: str) -> None:
    by = beside(f'{{variable: {SHARED}, value: "acme_fraction:{{fraction}}", separator: ","}}')
    on = pod("0.2", container(image=image, env=[{"name": SHARED, "value": value}]))
    written = environment(only_container(mutated(on, by)))[SHARED].split(",")
    assert set(after.split(",")) <= set(written)
    assert not any(one.endswith(":0.9") for one in written)
