from typing import Any

import pytest

from policies.policy_set import PolicySet
from tests.policies.pods import container, denied, environment, granted, mutated, only, only_container, pod, policies

MPS = policies()
SLICED = policies("strategy: time-slicing")
HEADROOM = policies("share: {minimum: '0.1'}\nmemory: {headroom: '0.05'}")
BASIS = policies("memory: {basis: granted}")


def set_by_us(image: str, share: str, by: PolicySet, **fields: Any) -> list[str]:
    """The arguments and variables that are new in the container."""
    before = container(image=image, **fields)
    after: dict[str, Any] = only_container(mutated(pod(share, before), by))
    arguments: list[str] = after.get("args", [])[len(before.get("args", [])) :]
    own = environment(before)
    return arguments + [f"{name}={value}" for name, value in environment(after).items() if own.get(name) != value]


TENSORFLOW_SERVING = "--per_process_gpu_memory_fraction="
PYTORCH = "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:"
JAX, NOT_ALSO = "XLA_PYTHON_CLIENT_MEM_FRACTION=", "XLA_CLIENT_MEM_FRACTION="
TRITON = "--backend-config=tensorflow,gpu-memory-fraction="
TRITON_LINE = {"command": ["tritonserver", "--model-repository=/models"]}
TRT_LINE = {"args": ["trtllm-serve", "model"]}


@pytest.mark.parametrize(
    ("image", "fields", "mps", "mps_quarter", "sliced"),
    [
        ("tensorflow/serving:2.19.1-gpu", {}, [f"{TENSORFLOW_SERVING}0.2"], [f"{TENSORFLOW_SERVING}0.25"],
         [f"{TENSORFLOW_SERVING}0.2"]),
        ("tensorflow/tensorflow:2.20.0-gpu", {}, ["TF_FORCE_GPU_ALLOW_GROWTH=true"],
         ["TF_FORCE_GPU_ALLOW_GROWTH=true"], ["TF_FORCE_GPU_ALLOW_GROWTH=true"]),
        ("pytorch/pytorch:2.10.0-cuda13.0", {}, [f"{PYTORCH}0.2"], [f"{PYTORCH}0.25"], [f"{PYTORCH}0.2"]),
        ("nvcr.io/nvidia/jax:25.10-py3", {}, [f"{JAX}0.2", NOT_ALSO], [f"{JAX}0.25", NOT_ALSO],
         [f"{JAX}0.2", NOT_ALSO]),
        ("vllm/vllm-openai:v0.11.0", {"args": ["--model", "m"]}, ["--gpu-memory-utilization=0.2"],
         ["--gpu-memory-utilization=0.25"], ["--gpu-memory-utilization=0.2"]),
        ("lmsysorg/sglang:v0.5.3", {"command": ["python3", "-m", "sglang.launch_server"]},
         ["--mem-fraction-static=0.8"], ["--mem-fraction-static=0.8"], ["--mem-fraction-static=0.16"]),
        ("ghcr.io/huggingface/text-generation-inference:3.3.5", {}, [], [], ["CUDA_MEMORY_FRACTION=0.18"]),
        ("nvcr.io/nvidia/tritonserver:25.01-py3", TRITON_LINE, [f"{TRITON}0.2"], [f"{TRITON}0.25"], [f"{TRITON}0.2"]),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.1", TRT_LINE, [], [], ["--kv_cache_free_gpu_memory_fraction=0.18"]),
        ("openmmlab/lmdeploy:v0.17.0", {"command": ["lmdeploy", "serve", "api_server", "m"]}, [], [],
         ["--cache-max-entry-count=0.18"]),
        ("deepjavalibrary/djl-serving:0.33.0-lmi", {}, ["OPTION_GPU_MEMORY_UTILIZATION=0.2"],
         ["OPTION_GPU_MEMORY_UTILIZATION=0.25"], ["OPTION_GPU_MEMORY_UTILIZATION=0.2"]),
        ("mxnet/python:1.9.1_gpu", {}, [], [], ["MXNET_GPU_MEM_POOL_RESERVE=82"]),
        ("paddlepaddle/paddle:3.3.1", {}, [], [], ["FLAGS_fraction_of_gpu_memory_to_use=0.18"]),
        ("cupy/cupy:v14.2.0", {}, ["CUPY_GPU_MEMORY_LIMIT=20%"], ["CUPY_GPU_MEMORY_LIMIT=25%"],
         ["CUPY_GPU_MEMORY_LIMIT=20%"]),
        ("ollama/ollama:0.20.1", {}, [], [], []),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", {}, [], [], []),
    ],
)  # fmt: skip
def test_each_framework_is_told_its_share(
    image: str, fields: dict[str, Any], mps: list[str], mps_quarter: list[str], sliced: list[str]
) -> None:
    assert set_by_us(image, "0.2", MPS, **fields) == mps
    assert set_by_us(image, "0.25", MPS, **fields) == mps_quarter
    assert set_by_us(image, "0.2", SLICED, **fields) == sliced


@pytest.mark.parametrize(
    ("share", "by", "fraction"),
    [
        ("0.2", HEADROOM, "0.15"),
        ("0.1", HEADROOM, "0.05"),
        ("0.25", BASIS, "0.3"),
        ("0.001", BASIS, "0.1"),
        ("0.25", MPS, "0.25"),
        ("0.001", MPS, "0.001"),
        ("0.95", MPS, "0.95"),
        ("12.5%", MPS, "0.125"),
    ],
)
def test_the_fraction_follows_basis_and_headroom(share: str, by: PolicySet, fraction: str) -> None:
    assert set_by_us("tensorflow/serving", share, by) == [f"{TENSORFLOW_SERVING}{fraction}"]


def test_a_limit_is_told_as_the_part_it_is() -> None:
    third = policies("share: {minimum: '0.001'}", "vgpusPerGpu: 3")
    fields: dict[str, Any] = {"image": "tensorflow/serving", "resources": {"limits": {"gpu-share.dev/vgpu": 1}}}
    assert only_container(mutated(pod(None, container(**fields)), third))["args"] == [f"{TENSORFLOW_SERVING}0.333"]


@pytest.mark.parametrize("share", ["1", "100%"])
@pytest.mark.parametrize("image", ["tensorflow/serving", "vllm/vllm-openai", "nvidia/jax", "pytorch/pytorch:2.10.0"])
def test_whole_gpus_need_no_setting(image: str, share: str) -> None:
    assert set_by_us(image, share, policies()) == []


@pytest.mark.parametrize("share", ["0.05", "0.1"])
def test_headroom_that_leaves_nothing_is_left_out_with_a_warning(share: str) -> None:
    by = policies("memory: {headroom: '0.1'}")
    on = pod(share, container(image="tensorflow/serving"))
    assert set_by_us("tensorflow/serving", share, by) == [f"{TENSORFLOW_SERVING}{share}"]
    assert any("memory.headroom" in warning for warning in granted(on, by).warnings)


def test_a_value_is_never_lowered_to_zero_which_means_all_of_it() -> None:
    by = policies("memory: {headroom: '0.1'}")
    own = container(image="tensorflow/serving", args=[f"{TENSORFLOW_SERVING}0.9"])
    decision = only_container(mutated(pod("0.1", own), by))
    assert decision["args"] != [f"{TENSORFLOW_SERVING}0"]


@pytest.mark.parametrize(
    ("tag", "set_it"),
    [
        ("2.10.0-cuda13.0-cudnn9-runtime", True),
        ("2.10", True),
        ("v2.10.1", True),
        ("2.15.0", True),
        ("3.0.0", True),
        ("2.9.1-cuda12.8", False),
        ("2.1.0", False),
        ("1.13.1", False),
        ("latest", False),
        ("", False),
        ("cuda12.8", False),
        ("2", False),
        ("nightly-2.10", False),
        ("2.10.0@sha256:0123", True),
        ("@sha256:2.10.0", False),
    ],
)
def test_pytorch_is_told_only_where_the_tag_says_a_version_that_understands(tag: str, *, set_it: bool) -> None:
    image = f"pytorch/pytorch{'' if tag.startswith('@') else ':' if tag else ''}{tag}"
    assert set_by_us(image, "0.2", MPS) == ([f"{PYTORCH}0.2"] if set_it else [])
    warnings = granted(pod("0.2", container(image=image))).warnings
    assert bool(warnings) is not set_it


@pytest.mark.parametrize(
    "image",
    ["nvcr.io/nvidia/pytorch:25.10-py3", "host:5000/pytorch/pytorch", "my/torch:2.10.0", "own/pytorch/pytorch:2025.01"],
)
def test_a_tag_that_counts_something_else_is_no_version(image: str) -> None:
    on = pod("0.2", container(image=image), annotations={"gpu-share.dev/framework": "pytorch"})
    assert environment(only_container(mutated(on))) == {}
    assert granted(on).warnings


@pytest.mark.parametrize("name", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_pytorch_settings_are_joined_to_those_that_are_there(name: str) -> None:
    variables = [{"name": "A", "value": "1"}, {"name": name, "value": "expandable_segments:True"}]
    on = pod("0.2", container(image="pytorch/pytorch:2.10.0", env=variables))
    assert environment(only_container(mutated(on))) == {
        "A": "1",
        name: "expandable_segments:True,per_process_memory_fraction:0.2",
    }


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
def test_of_a_variable_given_twice_the_last_which_counts_is_joined(strategy: str) -> None:
    variables = [{"name": "PYTORCH_CUDA_ALLOC_CONF", "value": value} for value in ("a:1", "b:2")]
    by = policies(f"strategy: {strategy}")
    after = mutated(pod("0.2", container(image="pytorch/pytorch:2.10.0", env=variables)), by)
    assert "per_process_memory_fraction:0.2" in environment(only_container(after))["PYTORCH_CUDA_ALLOC_CONF"]
    assert mutated(after, by) == after


def test_of_a_variable_given_twice_the_last_which_counts_is_held_to_the_share() -> None:
    variables = [
        {"name": "PYTORCH_CUDA_ALLOC_CONF", "value": value} for value in ("per_process_memory_fraction:0.1", "b:2")
    ]
    on = pod("0.2", container(image="pytorch/pytorch:2.10.0", env=variables))
    assert 'is set to "b:2", without the share' in denied(on, policies("strategy: time-slicing")).message


def test_pytorch_settings_that_are_a_reference_are_left_and_warned_about() -> None:
    variables = [{"name": "PYTORCH_CUDA_ALLOC_CONF", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]
    on = pod("0.2", container(image="pytorch/pytorch:2.10.0", env=variables))
    assert only_container(mutated(on))["env"] == variables
    assert "is a reference" in granted(on).warnings[0]


@pytest.mark.parametrize("name", ["XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"])
@pytest.mark.parametrize(("own", "expected"), [("0.1", "0.1"), ("0.2", "0.2"), ("0.9", "0.2"), (".9", "0.2")])
def test_jax_never_gets_both_of_its_names(name: str, own: str, expected: str) -> None:
    after = only_container(mutated(pod("0.2", container(image="nvidia/jax", env=[{"name": name, "value": own}]))))
    assert environment(after) == {name: expected}


def test_tensorflow_growth_is_the_users_to_decide() -> None:
    own = [{"name": "TF_FORCE_GPU_ALLOW_GROWTH", "value": "false"}]
    after = only_container(mutated(pod("0.2", container(image="tensorflow/tensorflow", env=own))))
    assert after["env"] == own


@pytest.mark.parametrize(
    ("image", "fields"),
    [
        ("vllm/vllm-openai", {"command": ["sh", "-c", "vllm serve m"]}),
        ("vllm/vllm-openai", {"command": ["/usr/bin/bash"], "args": ["-c", "vllm serve m"]}),
        ("vllm/vllm-openai", {"args": ["sh", "-c", "vllm serve m"]}),
        ("vllm/vllm-openai", {"command": ["/start.sh"]}),
        ("vllm/vllm-openai", {"command": ["tini", "--", "sh", "-c", "vllm serve m"]}),
        ("vllm/vllm-openai", {"command": ["vllm", "serve", "m", "--", "x"]}),
        ("vllm/vllm-openai", {"command": ["argoexec", "emissary", "--", "vllm", "serve", "m", "--", "x"]}),
        ("vllm/vllm-openai", {"args": ["--port", "8000", "--", "m"]}),
        ("lmsysorg/sglang", {}),
        ("nvcr.io/nvidia/tritonserver:25.01-py3", {}),
    ],
)
def test_where_an_argument_would_not_arrive_it_is_not_added_but_warned_about(
    image: str, fields: dict[str, Any]
) -> None:
    assert set_by_us(image, "0.2", MPS, **fields) == []
    assert "cannot be added" in granted(pod("0.2", container(image=image, **fields))).warnings[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "vllm/vllm-openai"},
        {"image": "host:5000/mirror/vllm/vllm-openai:v1@sha256:00", "args": ["--model", "m"]},
        {"image": "my/app", "command": ["vllm", "serve", "m"]},
        {"image": "my/app", "command": ["/opt/venv/bin/vllm"], "args": ["serve", "m"]},
        {"image": "my/app", "command": ["python3", "-u", "-m", "vllm.entrypoints.openai.api_server"]},
        {"image": "my/app", "command": ["python3", "-m", "vllm.entrypoints.cli.main", "serve", "m"]},
        {"image": "my/app", "command": ["tini", "-g", "--", "vllm", "serve", "m"]},
        {"image": "my/app", "args": ["vllm", "serve", "m"]},
    ],
)
def test_vllm_is_recognised_by_image_or_program(fields: dict[str, Any]) -> None:
    grant = granted(pod("0.2", container(**fields)))
    framework = only(grant).advice.framework
    assert framework is not None
    assert framework.name == "vllm"
    assert only_container(mutated(pod("0.2", container(**fields))))["args"][-1] == "--gpu-memory-utilization=0.2"


@pytest.mark.parametrize("image", ["my/vllm-openai-proxy", "vllm-openai.example/app", "tensorflow/serving-tools", ""])
def test_a_name_that_is_only_similar_is_not_recognised(image: str) -> None:
    assert only(granted(pod("0.2", container(image=image)))).advice.framework is None
