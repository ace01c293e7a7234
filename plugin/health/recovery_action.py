"""What the driver asks for after an error, where it tells: about release 565 and later."""

from math import isfinite
from typing import Any

from plugin.gpus.nvml import NvmlHealth

_FIELD = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # of a field's value, by its type


def recovery_action(nvml: NvmlHealth, handle: Any) -> int | None:
    """Ask a GPU's driver for NVML's number of the action; None if it says something else. Raises NVML's errors."""
    (answer,) = nvml.nvmlDeviceGetFieldValues(handle, [_FIELD])
    if answer.nvmlReturn:
        raise nvml.NVMLError(answer.nvmlReturn)
    if answer.valueType >= len(_MEMBERS):
        return None
    value = getattr(answer.value, _MEMBERS[answer.valueType])
    return int(value) if isfinite(value) else None
