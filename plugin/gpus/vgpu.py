"""The ID of a vGPU, `<GPU UUID>::<n>`: read and written here and nowhere else."""

import re
from dataclasses import dataclass

from policies.contract import DEVICE_ID_SEPARATOR

# No leading zeros: two texts must never name the same vGPU.
_GRAMMAR = re.compile(
    rf"(?P<uuid>(?:(?!{DEVICE_ID_SEPARATOR}).)+){DEVICE_ID_SEPARATOR}(?P<index>0|[1-9][0-9]{{0,5}})", re.ASCII
)


@dataclass(frozen=True, slots=True, order=True)
class VGpuId:
    """One of the equal parts of a GPU; `str()` is what the kubelet sees."""

    gpu_uuid: str
    index: int  # 0 is the first

    @classmethod
    def parse(cls, text: str) -> "VGpuId | None":
        """Read a device ID; None if *text* is none. Otherwise `str()` gives *text* back."""
        match = _GRAMMAR.fullmatch(text)
        return cls(match["uuid"], int(match["index"])) if match else None

    def __str__(self) -> str:
        return f"{self.gpu_uuid}{DEVICE_ID_SEPARATOR}{self.index}"
