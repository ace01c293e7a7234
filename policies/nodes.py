"""Which GPUs of which nodes an entry of `nodes` in `_cluster.yaml` selects, and how they are shared."""

import re
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from policies.contract import MPS, WHOLE, Allocation, SharingStrategy
from policies.form import Section, form

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
        Meta(description="Numbers of the GPUs on their node, as nvidia-smi counts them. null: all."),
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

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        if self.strategy is None and self.mig == "none" and self.allocation is None:
            raise ValueError("an entry of nodes says how GPUs are shared: add offer, mig or allocation")

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


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))
