"""The catalogue's entries for servers of language models."""

from policies.frameworks.framework import Framework, Memory, Override, Spelling

_VLLM_CACHE = "https://docs.vllm.ai/en/stable/api/vllm/config/cache/"
VLLM = Framework(
    name="vllm",
    images=("vllm-openai", "vllm-openai-rocm"),
    programs=(
        "vllm serve",
        "vllm run-batch",
        "python -m vllm.entrypoints.cli.main serve",
        "python -m vllm.entrypoints.cli.main run-batch",
        "python -m vllm.entrypoints.openai.api_server",
        "python -m vllm.entrypoints.openai.run_batch",
        "python -m vllm.entrypoints.api_server",
        "python -m vllm.entrypoints.grpc_server",
        "python -m dynamo.vllm",  # which takes vLLM's arguments beside its own
    ),
    other_programs=("vllm bench serve", "vllm chat", "vllm complete", "vllm collect-env"),  # which start no engine
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
                source=_VLLM_CACHE,
            ),
            Override(argument="--num-gpu-blocks-override", shortest="--num-g", source=_VLLM_CACHE),
            # Arguments beside it win, but it can hold those two.
            Override(
                argument="--config", general=True, source="https://docs.vllm.ai/en/latest/configuration/serve_args/"
            ),
        ),
    ),
    note="Weights, activations and KV cache together. vLLM does not start when less than the fraction of the "
    "whole GPU is free, and the CUDA context is inside an MPS limit: leave it about 0.5 GiB by memory.headroom.",
    source="https://docs.vllm.ai/en/latest/cli/serve/",
)

SGLANG = Framework(
    name="sglang",
    images=("sglang",),
    # Not `sglang serve`: it serves diffusion models too, and those exit on the argument.
    programs=("python -m sglang.launch_server", "python -m dynamo.sglang"),
    memory=Memory(
        of="free",
        of_free="0.8",
        # Unambiguous until --media-url-max-file-size-mb came.
        spellings=(
            Spelling(argument="--mem-fraction-static", shortest="--me"),
            Spelling(variable="SM_SGLANG_MEM_FRACTION_STATIC"),  # in SageMaker's images
        ),
    ),
    # https://github.com/sgl-project/sglang/blob/main/docker/serve
    option_prefixes=("SM_SGLANG_",),
    note="The fraction is of the memory free at start and covers weights and KV cache; activations and CUDA graphs "
    "need the rest. Unset, SGLang derives it from the size of the whole GPU; with `sglang serve` add it yourself.",
    source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/arg_groups/fields/schedule.py",
)

TGI = Framework(
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

_TENSORRT_LLM_SERVE = "https://github.com/NVIDIA/TensorRT-LLM/blob/main/tensorrt_llm/commands/serve.py"
TENSORRT_LLM = Framework(
    name="tensorrt-llm",
    images=("tensorrt-llm/release",),
    programs=("trtllm-serve",),  # with the model behind it, or `serve` or `grpc`
    other_programs=(
        "trtllm-serve disaggregated",
        "trtllm-serve disaggregated_mpi_worker",
        "trtllm-serve mm_embedding_serve",
    ),
    memory=Memory(
        of="free",
        spellings=(
            # Known from the first trtllm-serve on; the shorter name came later, for the same option.
            Spelling(argument="--kv_cache_free_gpu_memory_fraction"),
            Spelling(argument="--free_gpu_memory_fraction"),
            Spelling(argument="--kv_cache_free_gpu_mem_fraction"),  # of trtllm-bench
            Spelling(variable="OPTION_KV_CACHE_FREE_GPU_MEM_FRACTION"),  # of DJL Serving
        ),
        overridden_by=(
            Override(argument="--extra_llm_api_options", source=_TENSORRT_LLM_SERVE),
            Override(argument="--config", general=True, source=_TENSORRT_LLM_SERVE),
        ),
    ),
    note="The fraction is of the memory free after the weights are loaded and covers the KV cache alone; its default "
    "of 0.9 is right under MPS. A file given with --config overrides the option.",
    source=_TENSORRT_LLM_SERVE,
)

LMDEPLOY = Framework(
    name="lmdeploy",
    images=("openmmlab/lmdeploy",),
    programs=("lmdeploy serve api_server",),
    memory=Memory(
        of="free",
        spellings=(Spelling(argument="--cache-max-entry-count", shortest="--cache-m"),),
    ),
    note="The fraction is of the memory free after the weights are loaded and covers the KV cache alone; its default "
    "of 0.8 is right under MPS.",
    source="https://github.com/InternLM/lmdeploy/blob/main/lmdeploy/messages.py",
)

_DJL_OPTIONS = "https://docs.djl.ai/master/docs/serving/serving/docs/lmi/user_guides/vllm_user_guide.html"
_SAGEMAKER_OPTIONS = "https://docs.vllm.ai/en/latest/examples/online_serving/sagemaker-entrypoint/"
DJL_SERVING = Framework(
    name="djl-serving",
    images=("deepjavalibrary/djl-serving", "djl-inference"),
    memory=Memory(
        spellings=(
            Spelling(variable="OPTION_GPU_MEMORY_UTILIZATION"),
            Spelling(variable="SM_VLLM_GPU_MEMORY_UTILIZATION"),  # the same in SageMaker's images of vLLM
            Spelling(variable="OPTION_DEVICE_MEMORY_UTILIZATION"),  # vLLM's alias
            Spelling(variable="SM_VLLM_DEVICE_MEMORY_UTILIZATION"),
        ),
        needs_headroom=True,
        overridden_by=(
            Override(variable="OPTION_KV_CACHE_MEMORY_BYTES", source=_DJL_OPTIONS),
            Override(variable="OPTION_NUM_GPU_BLOCKS_OVERRIDE", source=_DJL_OPTIONS),
            Override(variable="SM_VLLM_CONFIG", source=_SAGEMAKER_OPTIONS),
            Override(variable="SM_VLLM_KV_CACHE_MEMORY_BYTES", source=_SAGEMAKER_OPTIONS),
            Override(variable="SM_VLLM_NUM_GPU_BLOCKS_OVERRIDE", source=_SAGEMAKER_OPTIONS),
        ),
    ),
    option_prefixes=("OPTION_", "SM_VLLM_"),
    note="Each option of its engine is a variable too; this one is vLLM's, the engine of most of its images.",
    source=_DJL_OPTIONS,
)

OLLAMA = Framework(
    name="ollama",
    images=("ollama/ollama",),
    programs=("ollama serve",),
    note="Needs nothing: it fits models to the memory it finds free. Versions that ask NVML see the whole GPU's and "
    "can run out of memory inside a share; set OLLAMA_GPU_OVERHEAD to the bytes outside the share then.",
    source="https://github.com/ollama/ollama/blob/main/envconfig/config.go",
)

LLAMA_CPP = Framework(
    name="llama.cpp",
    images=("ggml-org/llama.cpp", "ggerganov/llama.cpp"),
    programs=("llama-server",),
    note="Needs nothing: it fits layers and context to the memory that is free, with 1 GiB to spare (--fit-target). "
    "Versions without --fit, and explicit -ngl and -c, take what they are told.",
    source="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
)
