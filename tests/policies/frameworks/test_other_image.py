"""A framework that a text or a launcher starts in an image that is known for another one."""

import pytest

from tests.policies.pods import container, environment, granted, mutated, only_container, pod, policies

SLICED = policies("strategy: time-slicing")
PYTORCH = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
TRITON = "nvcr.io/nvidia/tritonserver:25.10-vllm-python-py3"
ADD_IT = "--gpu-memory-utilization=0.2 cannot be added to this command line, add it yourself"
SET = {
    PYTORCH: {"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.2"},
    "nvcr.io/nvidia/jax:25.10-py3": {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.2", "XLA_CLIENT_MEM_FRACTION": ""},
    "nvcr.io/nvidia/tensorrt-llm/release:1.2.1": {},
    TRITON: {},
    "my/app:1": {},
}
WAYS = [["bash", "-c", "pip install vllm && exec vllm serve m{}"], ["uv", "run", "vllm", "serve", "m{}"]]


@pytest.mark.parametrize("way", WAYS, ids=["text", "launcher"])
@pytest.mark.parametrize("image", SET)
def test_its_argument_is_warned_of_and_the_variables_of_the_image_are_set(image: str, way: list[str]) -> None:
    asks = pod("0.2", container(image=image, command=[word.format("") for word in way]))
    assert granted(asks, SLICED).warnings == (ADD_IT,)
    assert environment(only_container(mutated(asks, SLICED))) == SET[image]


@pytest.mark.parametrize("way", WAYS, ids=["text", "launcher"])
@pytest.mark.parametrize("image", SET)
def test_its_own_argument_within_the_share_is_enough(image: str, way: list[str]) -> None:
    words = [word for one in way for word in one.format(" --gpu-memory-utilization=0.1").split(" ")]
    command = [one.format(" --gpu-memory-utilization=0.1") for one in way] if "-c" in way else words
    assert granted(pod("0.2", container(image=image, command=command)), SLICED).warnings == ()


def test_an_image_that_takes_arguments_is_told_of_its_own_as_before() -> None:
    asks = pod("0.2", container(image="vllm/vllm-openai:v0.11.0", args=["m", "--chat-template", "tritonserver"]))
    assert only_container(mutated(asks, SLICED))["args"][-1] == "--gpu-memory-utilization=0.2"


def test_what_cannot_be_set_for_it_is_warned_of_beside_what_the_image_gets() -> None:
    asks = pod("0.2", container(image="nvcr.io/nvidia/jax:25.10-py3", command=["sh", "-c", "exec torchrun a.py"]))
    assert environment(only_container(mutated(asks, SLICED))) == SET["nvcr.io/nvidia/jax:25.10-py3"]
    assert "no memory setting: pytorch" in granted(asks, SLICED).warnings[0]


OWN = """
frameworks:
- name: team-paddle
  images: [team/paddle]
  memory: {spellings: [{variable: FLAGS_fraction_of_gpu_memory_to_use}]}
  source: https://team.example/paddle
"""


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
def test_a_variable_that_both_read_is_set_once_as_the_image_needs_it(strategy: str) -> None:
    command = ["sh", "-c", "exec python -m paddle.distributed.launch train.py"]
    asks = pod("0.2", container(image="team/paddle:1", command=command))
    after = only_container(mutated(asks, policies(f"strategy: {strategy}", OWN)))
    name = "FLAGS_fraction_of_gpu_memory_to_use"
    assert [one["value"] for one in after["env"] if one["name"] == name] == ["0.2"]
