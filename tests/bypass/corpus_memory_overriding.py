"""Settings of a program that may be any, and those with which a framework ignores its fraction."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.greedy import CONF, CONFIG_MAP, FRACTION, USE, Greedy, vllm


def in_any_image() -> Iterator[Greedy]:
    yield Greedy("an abbreviation in any image", {"args": ["--gp=0.95"]}, "warned", "denied")
    yield Greedy("an abbreviation apart in any image", {"args": ["--gpu-mem", "0.95"]}, "warned", "denied")
    yield Greedy(
        "an abbreviation with a Service's port", {"args": ["--gp", "0.9$(X_SERVICE_PORT)"]}, "warned", "denied"
    )
    yield Greedy("an option of others that looks like one", {"args": ["--gpu", "2", "--mem", "16"]}, "kept", "kept")
    yield Greedy("an option in an option", {"args": [f"--vllm-args={USE}=0.95"]}, "denied", "denied")
    yield Greedy(
        "options of another program in one word", {"args": [f"--run=vllm serve m {USE} 0.95"]}, "denied", "denied"
    )


def overriding() -> Iterator[Greedy]:
    for fields in (
        vllm("--kv-cache-memory-bytes=70G"),
        vllm("--kv_cache_memory_bytes", "70G"),
        {"command": ["sh", "-c", "vllm serve m --kv-cache-memory-bytes 70G"]},
        {"args": ["--extra_llm_api_options=/more.yaml"]},
        vllm("--num-gpu-blocks-override", "1000000"),
        vllm("--num-g=1000000"),
        vllm("--config", "/cm/vllm.yaml"),
        {"command": ["sh", "-c", "vllm serve m --config /cm/vllm.yaml"]},
        {"args": ["trtllm-serve", "m", "--config=/more.yaml"]},
        {"args": ["tritonserver", "--cuda-memory-pool-byte-size=0:70000000000"]},
        {"env": [variable("XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "70000")]},
        {"env": [variable("JAX_PJRT_CLIENT_CREATE_OPTIONS", "allocator:platform")]},
        {"env": [variable("JAX_PJRT_CLIENT_CREATE_OPTIONS", "memory_fraction:0.1;collective_memory_size:70000000000")]},
        {"env": [variable("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")]},
        {"env": [variable("XLA_PYTHON_CLIENT_ALLOCATOR", None, **CONFIG_MAP)]},
        {"command": ["env", "XLA_PYTHON_CLIENT_ALLOCATOR=platform", "python"]},
        {"env": [variable(CONF, "backend:cudaMallocAsync")]},
        {"env": [variable(CONF, f"{FRACTION}:0.1, backend : cudaMallocAsync")]},
        {"env": [variable("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")]},
        {"env": [variable("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "1")]},
        {"env": [variable("TF_GPU_ALLOCATOR", "cuda_malloc_async")]},
        {"args": ["--platform_config_file=/cm/platforms"], "image": "tensorflow/serving"},
        {"args": ["--tensorflow_session_config_file=/cm/session"], "image": "tensorflow/serving"},
        {"env": [variable("OPTION_KV_CACHE_MEMORY_BYTES", "70000000000")]},
        {"env": [variable("SM_VLLM_NUM_GPU_BLOCKS_OVERRIDE", "100000")]},
        {"env": [variable("SM_VLLM_kv_cache-memory_bytes", "70000000000")]},
        {"command": ["python", "x.py", "--jax_pjrt_client_create_options=memory_fraction:0.95"]},
        {"command": ["sh", "-c", "python x.py --jax_pjrt_client_create_options 'allocator:platform'"]},
    ):
        yield Greedy(f"what lifts the fraction: {fields}"[:120], fields, "kept", "denied")
    for words in (
        ["--kv-cache-mem=80000000000"],
        ["--kv-cache-m", "80_000_000_000"],
        ["--kv_cache_memory", "75G"],
        ["--num-gpu-b=100000"],
        ["--num-gpu", "5000"],
        ["--cuda-memory=0:80000000000"],
        ["--kv-cache-mem=9$(KUBERNETES_SERVICE_PORT)"],
    ):
        yield Greedy(f"what lifts the fraction, abbreviated: {words}", {"args": words}, "warned", "denied")
    for name, value in (("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"), (CONF, "backend:native")):
        yield Greedy(f"what does not lift it: {value}", {"env": [variable(name, value)]}, "kept", "kept")
