from pathlib import Path
from typing import Any

import pytest

from plugin.gpus.discovery import discover
from tests.plugin.gpus.fake_nvml import FakeNvml


@pytest.mark.parametrize(
    ("capability", "cuda", "clients"),
    [
        ((9, 0), 13010, 60),
        ((9, 0), 13040, 60),
        ((7, 0), 13010, 60),  # V100
        ((9, 0), 13000, 48),
        ((7, 5), 12040, 48),
        ((6, 1), 13010, 0),
        ((3, 7), None, 0),
        (None, 13010, 60),
        (None, 12080, 48),
        ((9, 0), None, None),
        (None, None, None),
    ],
)
def test_how_many_clients_mps_serves_follows_from_the_gpu_and_the_driver(
    tmp_path: Path, capability: tuple[int, int] | None, cuda: int | None, clients: int | None
) -> None:
    told: dict[str, Any] = {}
    if capability is not None:
        told["nvmlDeviceGetCudaComputeCapability"] = lambda _handle: capability
    if cuda is not None:
        told["nvmlSystemGetCudaDriverVersion_v2"] = lambda: cuda
    assert {gpu.mps_clients for gpu in discover(FakeNvml(**told), sysfs=tmp_path).gpus} == {clients}
