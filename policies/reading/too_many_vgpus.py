"""What is divided into more vGPUs than MPS serves clients, with no driver or not with all of them."""

from collections.abc import Iterator

from policies.contract import MPS, MPS_CLIENTS_BEFORE_CUDA_13_1
from policies.device_names import GPU_DEVICE, device_name, is_instance, is_model, of_profile, profile_of_device
from policies.errors import Problem
from policies.mps_clients import clients_of_instance, needs_newer_driver, too_many_clients
from policies.policy_set import PolicySet
from policies.reading.layers import CLUSTER_FILE


def too_many_for_mps(policies: PolicySet) -> Iterator[Problem]:
    """Yield the numbers of vGPUs that MPS may not serve, each once."""
    cluster, devices = policies.cluster, list(dict.fromkeys(_under_mps(policies)))
    for device in dict.fromkeys(one if cluster.own_parts(one) else GPU_DEVICE for one in devices):
        per_gpu, field = cluster.parts(MPS, device), "vgpusPerGpu"
        if device:
            field = "nodes" if is_model(device) else "vgpusPerInstance"
        if too_many := too_many_clients(per_gpu):
            yield Problem(CLUSTER_FILE, 0, field, f"pods under mps are denied: {too_many}")
        elif needs_newer_driver(per_gpu):
            of = f" of the device {device_name(device)}" if device else ""
            message = (
                f"{per_gpu} vGPUs{of} are more than the {MPS_CLIENTS_BEFORE_CUDA_13_1} clients that MPS serves with "
                "drivers before CUDA 13.1, and a GPU with such a driver is not shared: see that nvidia-smi shows CUDA "
                f"13.1 or newer on all nodes, or write at most {MPS_CLIENTS_BEFORE_CUDA_13_1}"
            )
            yield Problem(CLUSTER_FILE, 0, field, message)
    for device in devices:
        if is_instance(device):
            yield from _of_instance(profile_of_device(device), cluster.parts(MPS, device))


def _of_instance(profile: str, parts: int) -> Iterator[Problem]:
    before, most = clients_of_instance(profile)
    if before < parts and before < MPS_CLIENTS_BEFORE_CUDA_13_1 and not too_many_clients(parts):
        message = (
            f"{parts} vGPUs of a {profile} may be more than MPS serves clients there, and then it is not shared: of 7 "
            f"slices, as most GPUs have, it has {before} clients, or {most} with drivers from CUDA 13.1 on; see on a "
            f"node what `gpu-share plugin status` says, or write vgpusPerInstance: {{{profile}: {before}}}"
        )
        yield Problem(CLUSTER_FILE, 0, "vgpusPerInstance", message)


def _under_mps(policies: PolicySet) -> Iterator[str]:
    """Yield the devices that pods may have under MPS, and those that `nodes` shares by it."""
    used = (policies.default, *(one for name, one in policies.namespaces.items() if not policies.is_exempt(name)))
    for one in used:
        if one.policy.enabled and one.policy.strategy == MPS:
            yield from one.policy.shared_devices
    for rule in policies.cluster.nodes:
        if rule.strategy == MPS:
            yield rule.of_device
        if rule.mig == "shared":
            yield from map(of_profile, policies.cluster.vgpus_per_instance)
