import logging
from dataclasses import replace
from pathlib import Path
from time import monotonic

import grpc
import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.service import Resource
from plugin.gpus.gpu import Pool
from tests.plugin.device_plugin.test_service import allocate_request, ids, served


def test_several_gpus_under_mps_are_rejected_with_what_to_ask_for_and_nothing_of_them_is_held(
    directory: Path, resource: Resource, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with served(directory, resource) as stub, pytest.raises(grpc.RpcError) as rejection:
        stub.Allocate(allocate_request([*ids(pool, 0, *range(10)), *ids(pool, 1, *range(10))]))
    assert rejection.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "ask for at most 10 vGPUs in one container, or for GPUs that are advertised whole" in (
        rejection.value.details() or ""
    )
    assert [record.message for record in caplog.records if "alloca" in record.message] == ["allocation denied"]
    assert not resource.held.gpus()


def test_more_than_a_gpu_has_is_rejected_after_a_pause_though_nothing_is_hidden(
    directory: Path, resource: Resource, pool: Pool
) -> None:
    alone = replace(
        resource, devices=Devices(pool, resource=resource.name, only_one="a process reaches one GPU through MPS")
    )
    began = monotonic()
    with served(directory, alone) as stub, pytest.raises(grpc.RpcError) as rejection:
        stub.Allocate(allocate_request([*ids(pool, 0, *range(10)), *ids(pool, 1, *range(5))]))
    assert monotonic() - began >= 0.5
    details = rejection.value.details() or ""
    assert details.startswith(
        "15 vGPUs are more than a GPU of this node has, and a process reaches one GPU through MPS; "
    )
