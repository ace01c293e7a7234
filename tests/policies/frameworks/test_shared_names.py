"""A name that an entry of `_cluster.yaml` shares with a built-in framework lifts none of the built-in one's checks."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, environment, mutated, only_container, pod, policies

VLLM = "vllm/vllm-openai:v0.11.0"
SHARED = "PYTORCH_CUDA_ALLOC_CONF"


def beside(spelling: str) -> Any:
    """Policies with an entry that has *spelling* for its memory, under time-slicing."""
    entry = (
        f"{{name: acme, images: [acme/torch], programs: [acme-serve], source: s, memory: {{spellings: [{spelling}]}}}}"
    )
    return policies("strategy: time-slicing", f"frameworks: [{entry}]")


@pytest.mark.parametrize("name", ["--gpu-memory", "--gpu-memory-utilization"])
@pytest.mark.parametrize("unit", ["percent", "percentLeft"])
def test_an_option_is_judged_as_that_of_the_framework_that_runs(name: str, unit: str) -> None:
    by = beside(f'{{argument: {name}, value: "{{{unit}}}"}}')
    text = container(image=VLLM, command=["sh", "-c", f"exec vllm serve x {name} 0.9"])
    assert denied(pod("0.2", text), by).code == "MemoryArgumentAboveShare"


def test_where_nobody_knows_what_runs_an_option_is_judged_by_the_strictest_of_all() -> None:
    by = beside('{argument: --gpu-memory-utilization, value: "{percent}"}')
    on = container(image="mine:1", args=["--gpu-memory-utilization=0.9"])
    assert only_container(mutated(pod("0.2", on), by))["args"] == ["--gpu-memory-utilization=0.2"]
    own = container(image="mine:1", command=["acme-serve", "--gpu-memory-utilization=90"])
    assert only_container(mutated(pod("0.2", own), by))["command"] == ["acme-serve", "--gpu-memory-utilization=20"]


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
