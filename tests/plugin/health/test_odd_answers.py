"""A driver that answers oddly about one GPU: the others are as they were, and nothing fails."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugin.health.nvml_connection import KnownGpus, NvmlConnection
from plugin.simulated.gpus import simulated_node
from plugin.simulated.nvml import SimulatedNvml

NODE_WITHOUT_SYSFS = Path("/nowhere")
NODE = simulated_node("3xH200")
FIRST, *OTHERS = NODE.gpus


def no_text() -> Any:
    return b"\xff".decode()


def odd_value(value: float, kind: int) -> Sequence[Any]:
    members = dict.fromkeys(("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal"), value)
    return [SimpleNamespace(nvmlReturn=0, valueType=kind, value=SimpleNamespace(**members))]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("nvmlDeviceGetPciInfo", no_text),
        ("nvmlDeviceGetPciInfo", lambda: SimpleNamespace(busId=b"\xff")),
        ("nvmlDeviceGetPciInfo", lambda: SimpleNamespace(busId="")),
        ("nvmlDeviceGetNvLinkRemotePciInfo", no_text),
        ("nvmlDeviceGetNvLinkRemotePciInfo", lambda: SimpleNamespace(busId=b"\xff:0")),
        ("nvmlDeviceGetFieldValues", lambda: odd_value(float("nan"), 0)),
        ("nvmlDeviceGetFieldValues", lambda: odd_value(float("inf"), 0)),
        ("nvmlDeviceGetFieldValues", lambda: odd_value(0, 99)),
        ("nvmlDeviceGetName", no_text),
        ("nvmlDeviceGetUUID", no_text),
    ],
)
def test_an_odd_answer_about_one_gpu_costs_the_others_nothing(call: str, answer: Callable[[], Any]) -> None:
    class Odd(SimulatedNvml):
        def nvmlDeviceGetNvLinkState(self, _handle: Any, link: int, /) -> int:  # noqa: N802 - NVML's name
            return int(link < 4)

        def nvmlDeviceGetNvLinkRemotePciInfo(self, _handle: Any, _link: int, /) -> Any:  # noqa: N802 - likewise
            return SimpleNamespace(busId="00000000:01:00.0")

    nvml = Odd(NODE, clock=lambda: 0.0)
    usual = getattr(nvml, call)
    setattr(nvml, call, lambda handle, *rest: answer() if handle is FIRST else usual(handle, *rest))
    nvml.nvmlInit()
    probe = NvmlConnection(nvml, KnownGpus(), generation=1, clock=lambda: 0.0, sysfs=NODE_WITHOUT_SYSFS).probe()
    assert {gpu.uuid for gpu in probe.gpus} >= {gpu.uuid for gpu in OTHERS}
    assert [probe.looks[gpu.uuid].problem for gpu in OTHERS] == ["", ""]
