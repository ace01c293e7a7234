"""
Pods of Alibaba's gpushare: `aliyun.com/gpu-mem`, in GiB or MiB.

From https://github.com/AliyunContainerService/gpushare-device-plugin at 45fb8b8 (pkg/gpu/nvidia/const.go, nvidia.go,
allocate.go), gpushare-scheduler-extender at c0b6141 (docs/userguide.md), and, for the label `aliyun.com/gpu-count` and
`aliyun.com/gpu-core.percentage`, https://www.alibabacloud.com/help/en/ack (shared GPU scheduling).
"""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from policies.contract import MILLI_PER_GPU, SHARE_FRACTION, SHARE_MEMORY_MIB
from policies.errors import quoted
from policies.migration.foreign_pods import MIB, Amounts, Fields, OpenError, containers_of, part_of, variables_of
from policies.share import Share

MEMORY: Final = "aliyun.com/gpu-mem"
COUNT: Final = "aliyun.com/gpu-count"
CORES: Final = "aliyun.com/gpu-core.percentage"

MemoryUnit = Literal["GiB", "MiB"]

_PREFIX = "ALIYUN_COM_GPU_"
_BYTES: Final[dict[MemoryUnit, int]] = {"GiB": 1024 * MIB, "MiB": MIB}
_ALL = 100  # per cent


class Aliyun(msgspec.Struct, frozen=True):
    """Alibaba's gpushare, its unit of memory, and the memory of the GPUs that its pods ran on."""

    gpu_memory_bytes: int | None  # None: not said
    unit: MemoryUnit = "GiB"  # --memory-unit of its device plugin, with its default
    resources: tuple[str, ...] = (MEMORY, COUNT, CORES)

    def share(self, pod: Fields, amounts: Amounts) -> Share | None:
        """Bring memory and compute to one share: the larger of both."""
        asked = amounts.numbers
        if not asked.get(MEMORY):
            others = [name for name in asked if name != MEMORY and asked[name]]
            if others:
                raise OpenError(f"{others[0]} without {MEMORY} says no share: write the annotation gpu-share")
            return None
        self._check_count(pod, amounts)
        share = max(self._memory(amounts), _cores(amounts))
        if COUNT in asked:
            amounts.say(COUNT, "is a part of one GPU")
        return share

    def others(self, pod: Fields) -> Iterator[str]:
        """Say what else has no effect."""
        metadata = pod.get("metadata") or {}
        if COUNT in (metadata.get("labels") or {}):
            yield f"the label {COUNT} has no effect: a share is a part of one GPU"
        written = [key for key in metadata.get("annotations") or () if key.startswith(_PREFIX)]
        for key in written:
            yield f"the annotation {quoted(key, 60)[1:-1]} was written by Alibaba's scheduler, and has no effect"
        for container, name in variables_of(pod):
            if name.startswith(_PREFIX):
                yield f"container {quoted(container)}: {quoted(name, 60)[1:-1]} is the pod's own, and stays as it is"
        for one in containers_of(pod):
            if any(_PREFIX in text for text in _texts(one)):
                yield (
                    f"container {quoted(one['name'])}: reads {_PREFIX}..., which is no longer set: "
                    f"{SHARE_FRACTION} is its part of the GPU, {SHARE_MEMORY_MIB} the MiB of it"
                )

    def _check_count(self, pod: Fields, amounts: Amounts) -> None:
        label = ((pod.get("metadata") or {}).get("labels") or {}).get(COUNT, "1")
        for said in (str(amounts.numbers.get(COUNT, 1)), str(label)):
            if said != "1":
                raise OpenError(
                    f"{COUNT}: {quoted(said)} divides its memory over as many GPUs; a container here has a part of one "
                    "GPU, or whole GPUs: write the annotation gpu-share for one of the two"
                )

    def _memory(self, amounts: Amounts) -> Share:
        number = amounts.numbers[MEMORY]
        if self.gpu_memory_bytes is None:
            raise OpenError(f"{MEMORY}: {number} is {self.unit} of a GPU's memory: say how much it has by --gpu-memory")
        counted = self.gpu_memory_bytes // _BYTES[self.unit]
        if number == counted:
            amounts.say(MEMORY, f"{self.unit} is all that Alibaba's plugin counts of such a GPU: all of it")
            return Share(MILLI_PER_GPU)
        share, told = part_of(number * _BYTES[self.unit], self.gpu_memory_bytes)
        amounts.say(MEMORY, f"{self.unit}: {told}")
        return share


def _cores(amounts: Amounts) -> Share:
    if CORES not in amounts.numbers:
        return Share(0)
    cores = amounts.numbers[CORES]
    if cores > _ALL:
        raise OpenError(f"{CORES} is {cores}, expected at most {_ALL}: correct it")
    share = Share(cores * MILLI_PER_GPU // _ALL)
    amounts.say(
        CORES, f"% of the compute is {share}; a share is of compute and memory alike, so the larger of both counts"
    )
    return share


def _texts(container: Fields) -> Iterator[str]:
    values: list[Any] = [*(container.get("command") or ()), *(container.get("args") or ())]
    values += [one.get("value") for one in container.get("env") or ()]
    yield from (str(value) for value in values if value is not None)
