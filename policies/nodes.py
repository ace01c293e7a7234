"""Which GPUs of which nodes an entry of `nodes` in `_cluster.yaml` selects, and how they are shared."""

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from policies.contract import DRA, MPS, WHOLE, Allocation, SharingStrategy
from policies.device_names import GPU_DEVICE, ModelName, device_name, of_model
from policies.form import Section, form
from policies.mps_clients import too_many_clients
from policies.sizes import is_too_fine, too_fine

_Glob = Annotated[
    str,
    form("a glob of at most 100 characters, with no space at its ends", "gpu-*", pattern=r"\S([^\n]{0,98}\S)?"),
]


# How MIG instances are shared, by what `mig` says.
_OF_MIG: Final[dict[str, SharingStrategy | None]] = {"shared": MPS, "whole": WHOLE, "none": None}


class NodeRule(Section, frozen=True, kw_only=True):
    """Some GPUs, and their sharing strategy."""

    node: Annotated[_Glob, Meta(description="Name of the nodes, * and ? allowed.")] = "*"
    model: Annotated[
        _Glob, Meta(description="Model as NVML names it, such as *H200*; case does not matter.", examples=["*H200*"])
    ] = "*"
    indexes: Annotated[
        Annotated[tuple[Annotated[int, Meta(ge=0, le=1023, examples=[0])], ...], Meta(min_length=1)] | None,
        Meta(
            description="Numbers of the GPUs on their node, as nvidia-smi counts them when these are first read there. "
            "null: all."
        ),
    ] = None
    strategy: Annotated[
        Literal["mps", "time-slicing", "whole", "none"] | None,
        Meta(
            description="GPUs that are not in MIG mode: vGPUs by one of the strategies, whole GPUs, or none, left to "
            "another device plugin. null: what `--strategy` of the plugin on the node says."
        ),
    ] = msgspec.field(name="offer", default=None)
    mig: Annotated[
        Literal["shared", "whole", "none"],
        Meta(
            description="MIG instances of GPUs in MIG mode: each shared by MPS as a GPU of its own (shared), each "
            "whole, or none, left to NVIDIA's plugin."
        ),
    ] = "none"
    allocation: Annotated[
        Allocation | None,
        Meta(
            description="Who allocates them: the device-plugin, or the scheduler by dra. null: what `--allocation` of "
            "the plugin on the node says."
        ),
    ] = None
    device: Annotated[
        ModelName | None,
        Meta(
            description="A name for GPUs that are not in MIG mode, by which policies and pods ask for them and for no "
            "others: their resources are of their own, such as gpu-share.dev/vgpu-model-t4. null: GPUs like all others."
        ),
    ] = None
    vgpus_per_gpu: Annotated[
        Annotated[int, Meta(ge=1, le=100, examples=[4])] | None,
        Meta(
            description="vGPUs that each of them is divided into, where it is not `vgpusPerGpu` of the cluster. It "
            "needs a `device`, or `allocation: dra`."
        ),
    ] = None

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        if fault := self._fault():
            raise ValueError(fault)

    def _fault(self) -> str:
        number = self.vgpus_per_gpu
        is_as_all_others = self.allocation is None and self.device is None and number is None
        if self.strategy is None and self.mig == "none" and is_as_all_others:
            return "an entry of nodes says how GPUs are shared: add offer, mig, allocation, device or vgpusPerGpu"
        if self.strategy == "none" and self.device is not None:
            return "device names GPUs that are shared, and offer says none: remove one of the two"
        if number is None:
            return ""
        if self.strategy in ("none", WHOLE):
            return f"vgpusPerGpu divides GPUs that are shared, and offer says {self.strategy}: remove one of the two"
        if self.device is None and self.allocation != DRA:
            return (
                "vgpusPerGpu cannot be true of some GPUs under a resource that others have too: the scheduler counts "
                "the vGPUs of all nodes as one unit, and pods are counted before they have a node: add a device, such "
                "as device: t4, for a resource of their own, or allocation: dra, which counts thousandths"
            )
        if self.allocation == DRA and is_too_fine(number):
            return too_fine(number)
        return too_many_clients(number) if self.strategy == MPS else ""

    @property
    def of_device(self) -> str:
        """What shares of these GPUs are of: a device, that of all GPUs where they have no name."""
        return GPU_DEVICE if self.device is None else of_model(self.device)

    def fits(self, *, node: str, model: str, index: int) -> bool:
        """Whether the GPU with this number and model, on this node, is one of those selected."""
        return (
            (self.indexes is None or index in self.indexes)
            and self.is_for(node)
            and _pattern(self.model.lower()).fullmatch(model.lower()) is not None
        )

    @property
    def strategy_of_instances(self) -> SharingStrategy | None:
        """The sharing strategy of MIG instances; None where they are left to others."""
        return _OF_MIG[self.mig]

    def is_for(self, node: str) -> bool:
        """Whether GPUs of the node with this name can be among those selected."""
        return _pattern(self.node).fullmatch(node) is not None


def fault_of_numbers(nodes: Sequence[NodeRule]) -> str:
    """Say which device of *nodes* has two numbers of vGPUs; empty if none has."""
    numbers: dict[str, int | None] = {}
    for rule in nodes:
        if rule.device is None or rule.strategy == WHOLE:
            continue
        number = numbers.setdefault(rule.of_device, rule.vgpus_per_gpu)
        if number != rule.vgpus_per_gpu:
            one, other = (str(found or "that of the cluster") for found in (number, rule.vgpus_per_gpu))
            return (
                f"nodes gives the device {device_name(rule.of_device)} two numbers of vGPUs, {one} and {other}, and "
                "the scheduler counts one unit of its resource: write the same, or give one of them another device"
            )
    return ""


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))
