"""What calls of the simulated NVML fail with: NVML's numbers, and errors as its bindings raise them."""

_TEXTS = {
    1: "Uninitialized",
    3: "Not Supported",
    6: "Not Found",
    9: "Driver Not Loaded",
    10: "Timeout",
    13: "Function Not Found",
    15: "GPU is lost",
    999: "Unknown Error",
}
UNINITIALIZED, NOT_SUPPORTED, NOT_FOUND, DRIVER_NOT_LOADED = 1, 3, 6, 9
TIMEOUT, FUNCTION_NOT_FOUND, GPU_IS_LOST, UNKNOWN = 10, 13, 15, 999


class SimulatedNvmlError(Exception):
    """What a call fails with; `value` is NVML's number."""

    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__(_TEXTS[value])


class NotSupportedError(SimulatedNvmlError):
    """The GPU does not know that."""


class FunctionNotFoundError(SimulatedNvmlError):
    """The library does not know that."""
