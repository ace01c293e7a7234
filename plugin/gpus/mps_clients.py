"""How many clients MPS serves on a GPU, which follows from the GPU and the driver."""

from typing import Any

from plugin.gpus.nvml import NvmlGpus, if_answered
from policies.contract import MOST_MPS_CLIENTS, MPS_CLIENTS_BEFORE_CUDA_13_1

_VOLTA = (7, 0)  # compute capability
_CUDA_OF_MOST_CLIENTS = 13010  # 13.1, as NVML writes it


def mps_clients_of(nvml: NvmlGpus, handle: Any) -> int | None:
    """
    Say how many CUDA contexts MPS serves on a GPU: 60 from CUDA 13.1 on, 48 before; None if the driver does not say.

    0 for GPUs before Volta, on which MPS cannot limit a client's memory or threads.
    """
    capability = if_answered(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    if capability is not None and tuple(capability) < _VOLTA:
        return 0
    cuda = if_answered(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    if cuda is None:
        return None
    return MOST_MPS_CLIENTS if cuda >= _CUDA_OF_MOST_CLIENTS else MPS_CLIENTS_BEFORE_CUDA_13_1
