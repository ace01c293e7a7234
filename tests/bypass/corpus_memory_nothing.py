"""Settings of nothing, or so little that a framework reads nothing: to TensorFlow and CuPy that is no limit at all."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.greedy import CONF, FRACTION, JAX, OWN, USE, Greedy

SERVING = "--per_process_gpu_memory_fraction"
TRITON = "--backend-config=tensorflow,gpu-memory-fraction="
NOTHING = ("0", "0.0", ".0", "0.", "-0", "-0.0", "+0", "0e9", "1e-7", "1e-50", "1e-400", "1e-999999", "0.0009")


def of_nothing() -> Iterator[Greedy]:
    """Each spelling of nothing, and each kind of setting."""
    for number in NOTHING:
        fields = {"image": "tensorflow/serving", "args": [f"{SERVING}={number}"]}
        yield Greedy(f"nothing as {number}", fields, "lowered", "lowered")
        percent = {"env": [variable("CUPY_GPU_MEMORY_LIMIT", f"{number}%")]}
        yield Greedy(f"nothing as {number}%", percent, "lowered", "lowered")
    for image in (OWN, "cupy/cupy:v13.0.0"):
        limit = [variable("CUPY_GPU_MEMORY_LIMIT", "0")]
        yield Greedy(f"no bytes in {image}", {"image": image, "env": limit}, "lowered", "lowered")
    yield from _in_words()
    yield from _in_variables()


def _in_words() -> Iterator[Greedy]:
    for words in (
        [f"{USE}=0"],
        [USE, "0"],
        [f"{TRITON}0"],
        ["--tf-gpu-memory-fraction=0"],
        ["vllm", "serve", "m", "--gp=0.0001"],
    ):
        yield Greedy(f"nothing by {words}", {"args": words}, "lowered", "lowered")
    through = {"args": [f"{SERVING}=$(N)"], "env": [variable("N", "0")]}
    yield Greedy("nothing of a variable", through, "lowered", "lowered")
    text = {"command": ["sh", "-c", f"tensorflow_model_server {SERVING}=0"]}
    yield Greedy("nothing in a text", text, "denied", "denied")
    yield Greedy("nothing in a variable of words", {"env": [variable("ARGS", f"{SERVING}=0")]}, "lowered", "lowered")
    yield Greedy("nothing by env", {"command": ["env", f"{JAX}=0", "python", "x"]}, "lowered", "lowered")


def _in_variables() -> Iterator[Greedy]:
    for name, value in (
        (JAX, "0"),
        ("XLA_CLIENT_MEM_FRACTION", "0.0"),
        ("JAX_PJRT_CLIENT_CREATE_OPTIONS", "memory_fraction:0"),
        (CONF, f"{FRACTION}:0"),
        (CONF, f"a:1,{FRACTION}:0.1,{FRACTION}:0"),
        ("PYTORCH_ALLOC_CONF", f"{FRACTION}:0.0"),
        ("OPTION_GPU_MEMORY_UTILIZATION", "0"),
    ):
        yield Greedy(f"nothing by {name}={value}", {"env": [variable(name, value)]}, "lowered", "lowered")
    # Fractions of what is free, which is the share under MPS.
    for name, value in (
        ("CUDA_MEMORY_FRACTION", "0"),
        ("FLAGS_fraction_of_gpu_memory_to_use", "0"),
        ("SM_SGLANG_MEM_FRACTION_STATIC", "0"),
        ("MXNET_GPU_MEM_POOL_RESERVE", "100"),
        ("MXNET_GPU_MEM_POOL_RESERVE", "9999"),
    ):
        yield Greedy(f"nothing by {name}={value}", {"env": [variable(name, value)]}, "kept", "lowered")
