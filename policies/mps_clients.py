"""How many vGPUs a GPU can have under MPS: each tenant is at least one client of its server."""

from policies.contract import MOST_MPS_CLIENTS, MPS_CLIENTS_BEFORE_CUDA_13_1

_SLICES = 7  # of compute, in which most GPUs are cut


def too_many_clients(vgpus_per_gpu: int) -> str:
    """Say why no GPU can be shared so by MPS; empty if some driver can serve a client in each vGPU."""
    if vgpus_per_gpu <= MOST_MPS_CLIENTS:
        return ""
    return (
        f"vgpusPerGpu {vgpus_per_gpu} is more than the {MOST_MPS_CLIENTS} clients that MPS has on one GPU: "
        f"at most {MOST_MPS_CLIENTS} under mps, or share by time-slicing"
    )


def needs_newer_driver(vgpus_per_gpu: int) -> bool:
    """Whether MPS serves a client in each vGPU with drivers from CUDA 13.1 on alone."""
    return MPS_CLIENTS_BEFORE_CUDA_13_1 < vgpus_per_gpu <= MOST_MPS_CLIENTS


def clients_of_instance(profile: str) -> tuple[int, int]:
    """
    Count the clients of MPS on a MIG instance of a GPU of seven slices, before CUDA 13.1 and from it on.

    They are those of a GPU in proportion to the slices (docs.nvidia.com/datacenter/tesla/mig-user-guide, Deployment
    Considerations).
    """
    slices = min(int(profile.partition("g")[0]), _SLICES)
    return MPS_CLIENTS_BEFORE_CUDA_13_1 * slices // _SLICES, MOST_MPS_CLIENTS * slices // _SLICES
