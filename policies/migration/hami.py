"""
Pods of HAMi: `nvidia.com/gpu` with `nvidia.com/gpumem`, and its annotations.

From pkg/device/nvidia/device.go (GenerateResourceRequests, Fit), pkg/scheduler/webhook.go and pkg/util/types.go of
https://github.com/Project-HAMi/HAMi at 4707fb0, with the resource names and defaults of its chart.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from policies.contract import MILLI_PER_GPU
from policies.errors import quoted
from policies.migration.foreign_pods import MIB, Amounts, Fields, OpenError, part_of, variables_of
from policies.share import Share

COUNT: Final = "nvidia.com/gpu"
MEMORY: Final = "nvidia.com/gpumem"
PERCENTAGE: Final = "nvidia.com/gpumem-percentage"
CORES: Final = "nvidia.com/gpucores"
PRIORITY: Final = "nvidia.com/priority"

_SCHEDULER = "hami-scheduler"
_ALL = 100  # per cent
_BY_LABEL = (
    "has no effect: choose nodes by a label of theirs, such as nvidia.com/gpu.product, in the pod's nodeSelector"
)
_BY_UUID = "has no effect: a share goes to any GPU of its node"
_POLICY = "has no effect: --allocation-policy of the plugin, pack or spread, decides for a node"
_WRITTEN = "was written by HAMi's scheduler, and has no effect"
_ANNOTATIONS: Final[Mapping[str, str]] = {
    "nvidia.com/use-gputype": _BY_LABEL,
    "nvidia.com/nouse-gputype": _BY_LABEL,
    "nvidia.com/use-gpuuuid": _BY_UUID,
    "nvidia.com/nouse-gpuuuid": _BY_UUID,
    "nvidia.com/numa-bind": "has no effect: a share is on one GPU, and its node's Topology Manager aligns CPUs with it",
    "nvidia.com/vgpu-mode": "has no effect: the namespace's policy says by `strategy` how GPUs are shared",
    "hami.io/gpu-scheduler-policy": _POLICY,
    "hami.io/node-scheduler-policy": "has no effect: the scoring of Kubernetes' scheduler decides",
    "hami.io/device-scoring-weights": "has no effect: the scoring of Kubernetes' scheduler decides",
    "hami.io/vgpu-node": _WRITTEN,
    "hami.io/vgpu-time": _WRITTEN,
    "hami.io/bind-phase": _WRITTEN,
    "hami.io/bind-time": _WRITTEN,
    "hami.io/vgpu-devices-to-allocate": _WRITTEN,
    "hami.io/vgpu-devices-allocated": _WRITTEN,
}
_VARIABLES = ("CUDA_DISABLE_CONTROL", "CUDA_TASK_PRIORITY", "CUDA_OVERSUBSCRIBE", "GPU_CORE_UTILIZATION_POLICY")
_VARIABLE_PREFIXES = ("CUDA_DEVICE_MEMORY_", "CUDA_DEVICE_SM_LIMIT")


class Hami(msgspec.Struct, frozen=True):
    """HAMi, and the memory of the GPUs that its pods ran on."""

    gpu_memory_bytes: int | None  # None: not said
    resources: tuple[str, ...] = (COUNT, MEMORY, PERCENTAGE, CORES, PRIORITY)

    def share(self, pod: Fields, amounts: Amounts) -> Share | None:
        """Bring memory and cores to one share: the larger of both, times the number of whole GPUs."""
        del pod
        asked = amounts.numbers
        if PRIORITY in asked:
            amounts.say(PRIORITY, "has no equal: MPS and time-slicing have no order among the shares of a GPU")
        if not asked.keys() & {COUNT, MEMORY, PERCENTAGE, CORES}:
            return None
        count = asked.get(COUNT, 1)  # defaultGPUNum
        if count == 0:
            amounts.say(COUNT, "is no GPU, so the container gets no share")
            return None
        part = max(self._memory(amounts), _cores(amounts))
        if count > 1 and part < MILLI_PER_GPU:
            raise OpenError(
                f"{COUNT}: {count} asks for parts of {count} GPUs, {part} of each; a container here has a part of one "
                f'GPU, or whole GPUs: write gpu-share: "{count}" for whole ones, or a container for each part'
            )
        if COUNT in asked:
            amounts.say(COUNT, "is a part of one GPU" if part < MILLI_PER_GPU else "means as many whole GPUs")
        return Share(part * count)

    def others(self, pod: Fields) -> Iterator[str]:
        """Take HAMi's scheduler off, and say what else has no effect."""
        spec = pod["spec"]
        if spec.get("schedulerName") == _SCHEDULER:
            del spec["schedulerName"]
            yield f"schedulerName: {_SCHEDULER} is removed: Kubernetes' own scheduler counts vGPUs"
        for key in (pod.get("metadata") or {}).get("annotations") or ():
            if key in _ANNOTATIONS:
                yield f"the annotation {key} {_ANNOTATIONS[key]}"
        for container, name in variables_of(pod):
            if name in _VARIABLES or name.startswith(_VARIABLE_PREFIXES):
                shown = quoted(name, 60)[1:-1]
                yield f"container {quoted(container)}: {shown} is read by HAMi's library alone: remove it"

    def _memory(self, amounts: Amounts) -> Share:
        """Say how much of a GPU's memory is asked for: by amount, else by percentage, else all of it."""
        asked = amounts.numbers
        amount, percentage = asked.get(MEMORY, 0), asked.get(PERCENTAGE, 0)
        if percentage > _ALL:
            raise OpenError(f"{PERCENTAGE} is {percentage}, and HAMi denies more than {_ALL}: correct it")
        if amount:
            if self.gpu_memory_bytes is None:
                raise OpenError(f"{MEMORY}: {amount} is MiB of a GPU's memory: say how much it has by --gpu-memory")
            share, told = part_of(amount * MIB, self.gpu_memory_bytes)
            amounts.became.append(f"{MEMORY}: {told}")
            if PERCENTAGE in asked:
                amounts.say(PERCENTAGE, f"counts for nothing in HAMi beside {MEMORY}")
            return share
        if MEMORY in asked:
            amounts.say(MEMORY, "is as if it were not written")
        if percentage:
            amounts.say(PERCENTAGE, f"% of the memory is {Share(percentage * MILLI_PER_GPU // _ALL)}")
            return Share(percentage * MILLI_PER_GPU // _ALL)
        if PERCENTAGE in asked:
            amounts.say(PERCENTAGE, "is as if it were not written")
        amounts.became.append("no memory is named, which is all of a GPU's in HAMi, and makes it the container's own")
        return Share(MILLI_PER_GPU)


def _cores(amounts: Amounts) -> Share:
    """Say how much of a GPU's compute is asked for; none if it is not said, since HAMi does not limit it then."""
    if CORES not in amounts.numbers:
        return Share(0)
    cores = min(amounts.numbers[CORES], _ALL)
    share = Share(cores * MILLI_PER_GPU // _ALL)
    amounts.say(
        CORES, f"% of the compute is {share}; a share is of compute and memory alike, so the larger of both counts"
    )
    return share
