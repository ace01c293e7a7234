"""
Has NVML's bindings only say that a compute mode was set, in every Python that has this directory in its path.

For a machine whose compute mode is not the tests' to change: the node's part goes on as if it had set it.
"""

from typing import Any

import pynvml

_modes: dict[str, int] = {}  # by UUID, as this process was told
_mode_in_force = pynvml.nvmlDeviceGetComputeMode


def _set(handle: Any, mode: int) -> None:
    _modes[pynvml.nvmlDeviceGetUUID(handle)] = mode


def _get(handle: Any) -> int:
    uuid = pynvml.nvmlDeviceGetUUID(handle)
    return _modes[uuid] if uuid in _modes else int(_mode_in_force(handle))


pynvml.nvmlDeviceSetComputeMode = _set
pynvml.nvmlDeviceGetComputeMode = _get
