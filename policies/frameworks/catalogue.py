"""The built-in catalogue: how each framework is recognised, and what tells it how much GPU memory to take."""

from policies.frameworks.framework import Constant, Framework, Memory, Override, Spelling
from policies.frameworks.language_models import (
    DJL_SERVING,
    LLAMA_CPP,
    LMDEPLOY,
    OLLAMA,
    SGLANG,
    TENSORRT_LLM,
    TGI,
    VLLM,
)

_TENSORFLOW_SERVING = Framework(
    name="tensorflow-serving",
    images=("tensorflow/serving",),
    programs=("tensorflow_model_server", "tf_serving_entrypoint.sh"),
    image_takes_arguments=True,
    memory=Memory(
        spellings=(Spelling(argument="--per_process_gpu_memory_fraction"),),
        overridden_by=(
            Override(
                variable="TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
                source="https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/common_runtime/gpu/gpu_device.cc",
            ),
            # The fraction is how much the pool keeps then, and no cap.
            Override(
                variable="TF_GPU_ALLOCATOR",
                harmless=("",),
                source="https://github.com/openxla/xla/blob/main/xla/stream_executor/gpu/gpu_cudamallocasync_allocator.cc",
            ),
            Override(  # with which it does not read the fraction
                argument="--platform_config_file",
                source="https://github.com/tensorflow/serving/blob/master/tensorflow_serving/model_servers/server.cc",
            ),
            Override(  # which may divide the GPU by amounts, and then the fraction is not read either
                argument="--tensorflow_session_config_file",
                source="https://github.com/tensorflow/serving/blob/master/tensorflow_serving/model_servers/server.cc",
            ),
        ),
    ),
    note="The fraction caps TensorFlow's allocator, not the CUDA context. "
    "The server takes flags only as --flag=value and exits on any other form.",
    source="https://github.com/tensorflow/serving/blob/master/tensorflow_serving/model_servers/main.cc",
)

_TENSORFLOW = Framework(
    name="tensorflow",
    images=("tensorflow/tensorflow", "nvidia/tensorflow", "rocm/tensorflow"),
    constants=(Constant(variable="TF_FORCE_GPU_ALLOW_GROWTH", value="true"),),
    note="No variable sets a fraction: TensorFlow grows on demand, up to the memory that is free. "
    "A cap of its own needs set_logical_device_configuration in the program.",
    source="https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth",
)

_PYTORCH_MEMORY = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"
_PYTORCH = Framework(
    name="pytorch",
    images=(
        "pytorch/pytorch",
        "nvidia/pytorch",
        "pytorch/torchserve",
        "pytorch/torchserve-kfs",
        # For AMD, https://rocm.docs.amd.com, and for Gaudi, https://docs.habana.ai: for the strategy partition.
        "rocm/pytorch",
        "habanalabs/pytorch-installer-*",
    ),
    version_images=("pytorch/pytorch",),  # the others count by months (25.10) or on their own (0.12)
    programs=("torchrun", "python -m torch.distributed.run", "python -m torch.distributed.launch"),
    memory=Memory(
        spellings=(  # only builds for AMD read PYTORCH_HIP_ALLOC_CONF
            Spelling(variable="PYTORCH_CUDA_ALLOC_CONF", value="per_process_memory_fraction:{fraction}", separator=","),
            Spelling(variable="PYTORCH_ALLOC_CONF", value="per_process_memory_fraction:{fraction}", separator=","),
        ),
        since="2.10",
        overridden_by=(
            *(
                Override(variable=one, begins="backend:", separator=",", harmless=("native",), source=_PYTORCH_MEMORY)
                for one in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
            ),
            Override(variable="PYTORCH_NO_CUDA_MEMORY_CACHING", source=_PYTORCH_MEMORY),
        ),
    ),
    note="The fraction caps PyTorch's caching allocator in each process, not the CUDA context, NCCL or cuBLAS. "
    "Versions before 2.10 stop at the unknown key, so it is set only where the image's tag says 2.10 or later.",
    source="https://github.com/pytorch/pytorch/pull/161035",
)

_JAX_MEMORY = "https://docs.jax.dev/en/latest/gpu_memory_allocation.html"
_JAX_OPTIONS = "https://github.com/jax-ml/jax/blob/main/jaxlib/xla_client.py"
_JAX = Framework(
    name="jax",
    images=("nvidia/jax", "rocm/jax"),
    memory=Memory(
        spellings=(
            # The old name first: every version reads it.
            Spelling(variable="XLA_PYTHON_CLIENT_MEM_FRACTION"),
            Spelling(variable="XLA_CLIENT_MEM_FRACTION"),
            Spelling(variable="JAX_PJRT_CLIENT_CREATE_OPTIONS", value="memory_fraction:{fraction}", separator=";"),
        ),
        exclusive=True,
        overridden_by=(
            Override(variable="XLA_PYTHON_CLIENT_ALLOCATOR", harmless=("default", "bfc"), source=_JAX_MEMORY),
            Override(variable="XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", harmless=("0",), source=_JAX_OPTIONS),
            # A flag of programs that let absl read JAX's configuration; it can hold the fraction, too.
            Override(
                argument="--jax_pjrt_client_create_options",
                source="https://github.com/jax-ml/jax/blob/main/jax/_src/config.py",
            ),
            *(
                Override(
                    variable="JAX_PJRT_CLIENT_CREATE_OPTIONS",
                    begins=begins,
                    separator=";",
                    harmless=harmless,
                    source=_JAX_OPTIONS,
                )
                for begins, harmless in (("allocator:", ("default", "bfc")), ("collective_memory_size:", ("0",)))
            ),
        ),
    ),
    note="The fraction is allocated at start, in each process, unless XLA_PYTHON_CLIENT_PREALLOCATE=false; "
    "it stays the cap then. The platform allocator ignores it. "
    "JAX does not start with a value in both of its names: where the share is set in one, the other is set empty, "
    "whatever the image says. "
    "Where a program or a hook sets XLA_CLIENT_MEM_FRACTION at run time, write that name with the share into env.",
    source=_JAX_MEMORY,
)

_TRITON = Framework(
    name="triton",
    images=("tritonserver",),
    programs=("tritonserver",),
    memory=Memory(
        spellings=(
            Spelling(
                argument="--backend-config",
                value="tensorflow,gpu-memory-fraction={fraction}",
                shortest="--backend-c",
            ),
            # For all backends, to which it adds what stands for them alone.
            Spelling(argument="--backend-config", value="gpu-memory-fraction={fraction}", shortest="--backend-c"),
            Spelling(argument="--tf-gpu-memory-fraction", shortest="--tf-g"),  # before Triton 2
        ),
        overridden_by=(
            Override(
                argument="--cuda-memory-pool-byte-size",
                shortest="--cuda-m",
                harmless=("0:0",),
                source="https://github.com/triton-inference-server/server/blob/main/src/command_line_parser.cc",
            ),
        ),
    ),
    note="Reaches models of the TensorFlow backend alone; without that backend the option does nothing. "
    "Triton has no cap for all backends: limit the others in their model configuration.",
    source="https://github.com/triton-inference-server/tensorflow_backend#command-line-options",
)

_MXNET = Framework(
    name="mxnet",
    images=("mxnet/python", "nvidia/mxnet"),
    memory=Memory(
        # Under MPS free is the share: to reserve 80 % of the total would empty the pool at every allocation.
        of="free",
        spellings=(Spelling(variable="MXNET_GPU_MEM_POOL_RESERVE", value="{percentLeft}"),),
    ),
    note="Not a cap: when less than the reserve is free, MXNet gives cached memory back before it allocates more. "
    "Under MPS its default of 5 % is right.",
    source="https://mxnet.apache.org/api/faq/env_var",
)

_PADDLEPADDLE = Framework(
    name="paddlepaddle",
    images=("paddlepaddle/paddle", "nvidia/paddlepaddle"),
    programs=("python -m paddle.distributed.launch",),
    memory=Memory(
        of="free",
        spellings=(Spelling(variable="FLAGS_fraction_of_gpu_memory_to_use"),),
    ),
    note="The size of a chunk, not a cap, and only with FLAGS_allocator_strategy=naive_best_fit. "
    "For a hard cap set FLAGS_gpu_memory_limit_mb yourself: it is in MiB, which depends on the GPU.",
    source="https://www.paddlepaddle.org.cn/documentation/docs/en/guides/flags/memory_en.html",
)

_CUPY = Framework(
    name="cupy",
    images=("cupy/cupy",),
    memory=Memory(spellings=(Spelling(variable="CUPY_GPU_MEMORY_LIMIT", value="{percent}%"),)),
    note="Caps CuPy's default memory pool in each process; the CUDA context and other libraries come on top.",
    source="https://docs.cupy.dev/en/stable/reference/environment.html",
)

BUILT_IN: tuple[Framework, ...] = (
    _TENSORFLOW_SERVING,
    _TENSORFLOW,
    _PYTORCH,
    _JAX,
    VLLM,
    SGLANG,
    TGI,
    _TRITON,
    TENSORRT_LLM,
    LMDEPLOY,
    DJL_SERVING,
    _MXNET,
    _PADDLEPADDLE,
    _CUPY,
    OLLAMA,
    LLAMA_CPP,
)
