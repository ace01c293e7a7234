"""The built-in catalogue: how each framework is recognised, and what tells it how much GPU memory to take."""

from policies.frameworks.framework import Constant, Framework, Memory, Override, Spelling

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
        spellings=(
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
_JAX = Framework(
    name="jax",
    images=("nvidia/jax", "rocm/jax"),
    memory=Memory(
        spellings=(
            # The old name first: every version reads it, and JAX does not start when both are there.
            Spelling(variable="XLA_PYTHON_CLIENT_MEM_FRACTION"),
            Spelling(variable="XLA_CLIENT_MEM_FRACTION"),
        ),
        overridden_by=(
            Override(variable="XLA_PYTHON_CLIENT_ALLOCATOR", harmless=("default", "bfc"), source=_JAX_MEMORY),
        ),
    ),
    note="The fraction is allocated at start, in each process, unless XLA_PYTHON_CLIENT_PREALLOCATE=false; "
    "it stays the cap then. The platform allocator ignores it.",
    source=_JAX_MEMORY,
)

_VLLM = Framework(
    name="vllm",
    images=("vllm-openai", "vllm-openai-rocm"),
    programs=(
        "vllm serve",
        "vllm run-batch",
        "python -m vllm.entrypoints.openai.api_server",
        "python -m vllm.entrypoints.openai.run_batch",
        "python -m vllm.entrypoints.api_server",
        "python -m vllm.entrypoints.grpc_server",
    ),
    image_takes_arguments=True,
    memory=Memory(
        spellings=(
            Spelling(argument="--gpu-memory-utilization", shortest="--gp"),
            # An alias of newer versions. Not shorter: --device and --device-ids are other options.
            Spelling(argument="--device-memory-utilization", shortest="--device-m"),
        ),
        needs_headroom=True,
        overridden_by=(
            Override(
                argument="--kv-cache-memory-bytes",
                shortest="--kv-cache-m",
                source="https://docs.vllm.ai/en/stable/api/vllm/config/cache/",
            ),
        ),
    ),
    note="Weights, activations and KV cache together. vLLM does not start when less than the fraction of the "
    "whole GPU is free, and the CUDA context is inside an MPS limit: leave some memory.headroom.",
    source="https://docs.vllm.ai/en/latest/cli/serve/",
)

_SGLANG = Framework(
    name="sglang",
    images=("sglang",),
    # Not `sglang serve`: it serves diffusion models too, and those exit on the argument.
    programs=("python -m sglang.launch_server",),
    memory=Memory(
        of="free",
        of_free="0.8",
        # Unambiguous until --media-url-max-file-size-mb came.
        spellings=(Spelling(argument="--mem-fraction-static", shortest="--me"),),
    ),
    note="The fraction is of the memory free at start and covers weights and KV cache; activations and CUDA graphs "
    "need the rest. Unset, SGLang derives it from the size of the whole GPU; with `sglang serve` add it yourself.",
    source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/arg_groups/fields/schedule.py",
)

_TGI = Framework(
    name="tgi",
    images=("text-generation-inference",),
    programs=("text-generation-launcher",),
    memory=Memory(
        # It caps PyTorch at the fraction of the total, but sizes the KV cache by what is free less the other
        # (1 - fraction) of the total. Under MPS free is the share already, so 0.2 would leave no KV cache at all.
        of="free",
        spellings=(
            Spelling(variable="CUDA_MEMORY_FRACTION"),
            Spelling(argument="--cuda-memory-fraction"),
        ),
    ),
    note="Under MPS the default of 1 follows the share; a smaller fraction takes the rest of the GPU off the KV cache "
    "once more, and the server may fail to start. Under time-slicing it counts on its neighbours using nothing.",
    source="https://huggingface.co/docs/text-generation-inference/reference/launcher",
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
            Spelling(argument="--tf-gpu-memory-fraction"),  # before Triton 2
        ),
    ),
    note="Reaches models of the TensorFlow backend alone; without that backend the option does nothing. "
    "Triton has no cap for all backends: limit the others in their model configuration.",
    source="https://github.com/triton-inference-server/tensorflow_backend#command-line-options",
)

_TENSORRT_LLM_SERVE = "https://github.com/NVIDIA/TensorRT-LLM/blob/main/tensorrt_llm/commands/serve.py"
_TENSORRT_LLM = Framework(
    name="tensorrt-llm",
    images=("tensorrt-llm/release",),
    programs=("trtllm-serve",),
    memory=Memory(
        of="free",
        spellings=(
            # Known from the first trtllm-serve on; the shorter name came later, for the same option.
            Spelling(argument="--kv_cache_free_gpu_memory_fraction"),
            Spelling(argument="--free_gpu_memory_fraction"),
        ),
        overridden_by=(Override(argument="--extra_llm_api_options", source=_TENSORRT_LLM_SERVE),),
    ),
    note="The fraction is of the memory free after the weights are loaded and covers the KV cache alone; its default "
    "of 0.9 is right under MPS. A file given with --config overrides the option.",
    source=_TENSORRT_LLM_SERVE,
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

_OLLAMA = Framework(
    name="ollama",
    images=("ollama/ollama",),
    programs=("ollama serve",),
    note="Needs nothing: it fits models to the memory it finds free. Versions that ask NVML see the whole GPU's and "
    "can run out of memory inside a share; set OLLAMA_GPU_OVERHEAD to the bytes outside the share then.",
    source="https://github.com/ollama/ollama/blob/main/envconfig/config.go",
)

_LLAMA_CPP = Framework(
    name="llama.cpp",
    images=("ggml-org/llama.cpp", "ggerganov/llama.cpp"),
    programs=("llama-server",),
    note="Needs nothing: it fits layers and context to the memory that is free, with 1 GiB to spare (--fit-target). "
    "Versions without --fit, and explicit -ngl and -c, take what they are told.",
    source="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
)

BUILT_IN: tuple[Framework, ...] = (
    _TENSORFLOW_SERVING,
    _TENSORFLOW,
    _PYTORCH,
    _JAX,
    _VLLM,
    _SGLANG,
    _TGI,
    _TRITON,
    _TENSORRT_LLM,
    _MXNET,
    _PADDLEPADDLE,
    _CUPY,
    _OLLAMA,
    _LLAMA_CPP,
)
