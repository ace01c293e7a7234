"""Every set of ways to hand a GPU over, and a host's /dev."""

from pathlib import Path

import pytest

from policies.contract import Handover
from tests.plugin.shares.two_gpus import EVERY_SET


@pytest.fixture(params=EVERY_SET, ids=lambda ways: "+".join(sorted(ways)))
def ways(request: pytest.FixtureRequest) -> frozenset[Handover]:
    chosen: frozenset[Handover] = request.param
    return chosen


@pytest.fixture
def host_dev(tmp_path: Path) -> Path:
    dev = tmp_path / "dev"
    dev.mkdir()
    (dev / "nvidia-modeset").touch()
    return dev
