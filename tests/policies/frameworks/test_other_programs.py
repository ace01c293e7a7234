"""Sub-commands of a framework's program that do not take the argument by which it is told its share."""

import pytest

from tests.policies.pods import container, granted, mutated, only_container, pod, policies


@pytest.mark.parametrize("name", ["disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve"])
def test_a_sub_command_gets_no_argument_that_only_its_neighbour_takes(name: str) -> None:
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"
    start = ["trtllm-serve", name, "-c", "x.yaml"]
    for command in (start, ["mpirun", "-n", "2", *start], ["sh", "-c", f"exec {' '.join(start)}"]):
        on = pod("0.2", container(image=image, command=command))
        (warning,) = granted(on, policies("strategy: time-slicing")).warnings
        assert warning == (
            "--kv_cache_free_gpu_memory_fraction=0.18 cannot be added to this command line, add it yourself, but not "
            f"behind trtllm-serve {name}, which does not take it"
        )
        assert "args" not in only_container(mutated(on, policies("strategy: time-slicing")))
    served = pod("0.2", container(image=image, command=["trtllm-serve", "serve", "m"]))
    sliced = only_container(mutated(served, policies("strategy: time-slicing")))
    assert sliced["args"] == ["--kv_cache_free_gpu_memory_fraction=0.18"]
