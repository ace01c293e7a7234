"""Sub-commands of a framework's program that do not take the argument by which it is told its share."""

import pytest

from tests.policies.pods import container, granted, mutated, only_container, pod, policies

TENSORRT_LLM = ("nvcr.io/nvidia/tensorrt-llm/release:1.2.1", "--kv_cache_free_gpu_memory_fraction=0.18")
VLLM = ("vllm/vllm-openai:v0.11.0", "--gpu-memory-utilization=0.2")
SLICED = policies("strategy: time-slicing")


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("trtllm-serve disaggregated", TENSORRT_LLM),
        ("trtllm-serve disaggregated_mpi_worker", TENSORRT_LLM),
        ("trtllm-serve mm_embedding_serve", TENSORRT_LLM),
        ("vllm bench serve", VLLM),
        ("vllm chat", VLLM),
        ("vllm complete", VLLM),
        ("vllm collect-env", VLLM),
    ],
)
def test_a_sub_command_gets_no_argument_that_only_its_neighbour_takes(name: str, of: tuple[str, str]) -> None:
    image, argument = of
    start = [*name.split(), "-c", "x.yaml"]
    for command in (start, ["mpirun", "-n", "2", *start], ["sh", "-c", f"exec {' '.join(start)}"]):
        on = pod("0.2", container(image=image, command=command))
        (warning,) = granted(on, SLICED).warnings
        assert warning == (
            f"{argument} cannot be added to this command line, add it yourself, but not "
            f"behind {name}, which does not take it"
        )
        assert "args" not in only_container(mutated(on, SLICED))


@pytest.mark.parametrize(
    ("command", "of"),
    [("trtllm-serve serve m", TENSORRT_LLM), ("vllm serve m", VLLM), ("vllm run-batch -i x", VLLM)],
)
def test_one_that_takes_it_gets_it(command: str, of: tuple[str, str]) -> None:
    image, argument = of
    served = pod("0.2", container(image=image, command=command.split()))
    assert only_container(mutated(served, SLICED))["args"] == [argument]


def test_a_benchmark_that_starts_an_engine_is_told_to_take_it() -> None:
    (warning,) = granted(pod("0.2", container(image=VLLM[0], command=["vllm", "bench", "latency"])), SLICED).warnings
    assert warning.endswith("add it yourself")
