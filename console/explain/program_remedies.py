"""What to do about what CUDA and frameworks say in a container: the table of docs/troubleshooting.md, for programs."""

from collections.abc import Iterable, Iterator
from typing import Final

from console.explain.remedy import Remedy

_PAGE: Final = "troubleshooting.md#cuda-is-out-of-memory-or-the-device-is-busy"


def _each(what: str, said: Iterable[str]) -> Iterator[Remedy]:
    return (Remedy(says=says, what=what, page=_PAGE) for says in said)


# Texts and names of https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html and of the runtime's errors.
OUT_OF_MEMORY: Final = tuple(
    _each(
        "the memory of its share is used up: ask for a larger share, or set the framework's memory lower",
        (
            "CUDA out of memory",
            "CUDA error: out of memory",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "cudaErrorMemoryAllocation",
        ),
    )
)
LESS_AT_START: Final = tuple(
    _each(
        "less was free at start than its fraction, since the CUDA context came first: have memory.headroom for 0.5 GiB "
        "in the policy",
        ("is less than desired GPU memory utilization",),
    )
)
OF_PROGRAMS: Final = (
    *OUT_OF_MEMORY,
    *_each(
        "the program does not go through MPS, or another has the GPU: look whether the image or an envFrom sets "
        "CUDA_MPS_PIPE_DIRECTORY, and whether the GPU is healthy",
        (
            "CUDA-capable device(s) is/are busy or unavailable",
            "CUDA_ERROR_DEVICE_UNAVAILABLE",
            "cudaErrorDevicesUnavailable",
        ),
    ),
    *_each(
        "the tenants of the GPU have more CUDA contexts than MPS serves: run fewer processes in the containers, or "
        "have a smaller vgpusPerGpu",
        (
            "CUDA_ERROR_MPS_MAX_",
            "cudaErrorMpsMax",
            "CUDA error 808",
            "CUDA error 809",
            "MPS client have been exhausted",
            "device connections have been exhausted",
        ),
    ),
    *_each(
        "the MPS daemon is gone, or recovers from a fault: look at gpu-share plugin status on the node, and create the "
        "pod again",
        (
            "MPS client failed to connect",
            "call between the MPS server and the MPS client failed",
            "MPS server is not ready",
            "CUDA_ERROR_MPS_CONNECTION_FAILED",
            "CUDA_ERROR_MPS_RPC_FAILURE",
            "CUDA_ERROR_MPS_SERVER_NOT_READY",
            "cudaErrorMpsConnectionFailed",
            "cudaErrorMpsRpcFailure",
            "cudaErrorMpsServerNotReady",
            "CUDA error 805",
            "CUDA error 806",
            "CUDA error 807",
        ),
    ),
    *LESS_AT_START,
    *_each(
        "the container has no GPU: look at its NVIDIA_VISIBLE_DEVICES, and at the container runtime of the node",
        ("no CUDA-capable device is detected", "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice"),
    ),
)
