"""What is held of a node's GPUs at one moment, and what that leaves of each."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from plugin.device_plugin.holder import Holder, parsed
from plugin.gpus.gpu import VGpuId
from plugin.shares.parts import free_vgpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """The held vGPUs by UUID of the GPU that each is on, and by ID. Nothing of it changes, so all is counted once."""

    by_gpu: Mapping[str, Mapping[str, Holder]] = field(default_factory=dict)
    is_known: bool = False  # the kubelet has said it
    is_incomplete: bool = False  # more may be held than is known
    ids: frozenset[str] = field(init=False)  # of all that is held
    outliving: frozenset[str] = field(init=False)  # those of them that the kubelet would give away
    named: dict[str, set[int]] = field(init=False, default_factory=dict)  # by UUID in the ID, and index
    _kinds: dict[str, set[tuple[str, int, bool]]] = field(init=False, default_factory=dict)  # see `_kind`
    _free: dict[tuple[str, int], int] = field(init=False, default_factory=dict)  # by GPU and number

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", frozenset().union(*self.by_gpu.values()))
        outliving = (text for held in self.by_gpu.values() for text, one in held.items() if one.outlives)
        object.__setattr__(self, "outliving", frozenset(outliving))
        for text in self.ids:
            if vgpu := parsed(text):
                self.named.setdefault(vgpu.gpu_uuid, set()).add(vgpu.index)
        for gpu, held in self.by_gpu.items():
            self._kinds[gpu] = set(map(_kind, held.values()))

    def is_lost(self, resource: str, gpus: Collection[str], *, but_as: Collection[str] = ()) -> bool:
        """
        Whether nobody knows on which GPU a vGPU is that names one of *gpus*, or is held as *resource*.

        What is held as one of *but_as* is on the GPU that it names.
        """
        kinds = ((gpu, kind) for gpu, of_gpu in self._kinds.items() for kind in of_gpu)
        return any(
            not is_located and held_as not in but_as and (gpu in gpus or held_as == resource)
            for gpu, (held_as, _, is_located) in kinds
        )

    def free(self, gpu: str, *, vgpus_per_gpu: int, but: Collection[str] = ()) -> int:
        """Count what is free of a GPU, were it divided by that number, and as if the IDs in *but* were free too."""
        if but:
            return self._counted(gpu, vgpus_per_gpu=vgpus_per_gpu, but=but)
        key = gpu, vgpus_per_gpu
        if key not in self._free:
            self._free[key] = self._counted(gpu, vgpus_per_gpu=vgpus_per_gpu)
        return self._free[key]

    def held_as(self, resource: str, gpus: Collection[str]) -> Iterable[tuple[VGpuId, str]]:
        """
        List the vGPUs that are held as *resource*, each with the UUID of the GPU that it is on.

        Those of which nobody says as what they are held are the resource's if they name one of its *gpus*. Those that
        name another one are not listed anew to a kubelet that may have rejected their pod when the machine restarted.
        """
        for gpu, held in self.by_gpu.items():
            for text, one in held.items():
                if one.gpu in ("", gpu) and one.resource in ("", resource) and (vgpu := parsed(text)):
                    is_kept = one.resource == resource and (one.container or not one.before_boot)
                    if vgpu.gpu_uuid in gpus or is_kept:
                        yield vgpu, gpu

    def _counted(self, gpu: str, *, vgpus_per_gpu: int, but: Collection[str] = ()) -> int:
        held = self.by_gpu.get(gpu, {})
        return free_vgpus((one.of for text, one in held.items() if text not in but), vgpus_per_gpu=vgpus_per_gpu)


def _kind(holder: Holder) -> tuple[str, int, bool]:
    """Say what many vGPUs of a GPU have in common: the resource, the number, and whether it is known where they are."""
    return holder.resource, holder.of, bool(holder.gpu)
