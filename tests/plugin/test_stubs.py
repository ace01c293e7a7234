from pathlib import Path
from typing import Any

import pytest

from plugin.device_plugin.v1beta1 import api_pb2
from plugin.dra.registration_v1 import api_pb2 as registration
from plugin.dra.v1 import api_pb2 as dra
from plugin.dra.v1alpha1 import api_pb2 as dra_health
from plugin.pod_resources.v1 import api_pb2 as podresources
from tests.plugin import stubs


def test_the_stubs_are_what_the_generator_makes() -> None:
    assert stubs.main(["--check"]) == 0


def test_a_stub_that_differs_is_named_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, text in stubs.generated_files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text if name != "plugin/device_plugin/v1beta1/api_pb2.pyi" else text + "#")
    assert stubs.main(["--check"], into=tmp_path) == 1
    assert (
        capfd.readouterr().err
        == "plugin/device_plugin/v1beta1/api_pb2.pyi differ from api.proto: run python -m tests.plugin.stubs\n"
    )
    assert stubs.main([], into=tmp_path) == 0
    assert stubs.main(["--check"], into=tmp_path) == 0


def test_an_unknown_argument_is_bad_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert stubs.main(["--chekc"]) == 2
    assert "usage" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("RegisterRequest", {"version": 1, "endpoint": 2, "resource_name": 3, "options": 4}),
        ("DevicePluginOptions", {"pre_start_required": 1, "get_preferred_allocation_available": 2}),
        ("Device", {"ID": 1, "health": 2, "topology": 3}),
        (
            "ContainerPreferredAllocationRequest",
            {"available_deviceIDs": 1, "must_include_deviceIDs": 2, "allocation_size": 3},
        ),
        (
            "ContainerAllocateResponse",
            {"envs": 1, "mounts": 2, "devices": 3, "annotations": 4, "cdi_devices": 5},
        ),
        ("Mount", {"container_path": 1, "host_path": 2, "read_only": 3}),
    ],
)
def test_the_field_numbers_are_the_kubelets(message: str, fields: dict[str, int]) -> None:
    descriptor = api_pb2.DESCRIPTOR.message_types_by_name[message]
    assert {field.name: field.number for field in descriptor.fields} == fields


def test_the_services_are_found_under_the_kubelets_names() -> None:
    assert sorted(service.full_name for service in api_pb2.DESCRIPTOR.services_by_name.values()) == [
        "v1beta1.DevicePlugin",
        "v1beta1.Registration",
    ]


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("PodResources", {"name": 1, "namespace": 2, "containers": 3}),
        ("ContainerResources", {"name": 1, "devices": 2, "dynamic_resources": 5}),
        ("ContainerDevices", {"resource_name": 1, "device_ids": 2}),
        ("DynamicResource", {"claim_name": 2, "claim_namespace": 3, "claim_resources": 4}),
        ("ClaimResource", {"cdi_devices": 1, "driver_name": 2, "pool_name": 3, "device_name": 4}),
        ("CDIDevice", {"name": 1}),
    ],
)
def test_the_field_numbers_of_pod_resources_are_the_kubelets(message: str, fields: dict[str, int]) -> None:
    descriptor = podresources.DESCRIPTOR.message_types_by_name[message]
    assert {field.name: field.number for field in descriptor.fields} == fields
    assert [service.full_name for service in podresources.DESCRIPTOR.services_by_name.values()] == [
        "v1.PodResourcesLister"
    ]


@pytest.mark.parametrize(
    ("descriptor", "message", "fields"),
    [
        (dra.DESCRIPTOR, "Claim", {"namespace": 1, "uid": 2, "name": 3}),
        (
            dra.DESCRIPTOR,
            "Device",
            {"request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4, "share_id": 5},
        ),
        (dra.DESCRIPTOR, "NodePrepareResourceResponse", {"devices": 1, "error": 2}),
        (dra.DESCRIPTOR, "NodeUnprepareResourceResponse", {"error": 1}),
        (
            dra_health.DESCRIPTOR,
            "DeviceHealth",
            {"device": 1, "health": 2, "last_updated_time": 3, "health_check_timeout_seconds": 4, "message": 5},
        ),
        (
            registration.DESCRIPTOR,
            "PluginInfo",
            {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4},
        ),
        (registration.DESCRIPTOR, "RegistrationStatus", {"plugin_registered": 1, "error": 2}),
    ],
)
def test_the_field_numbers_of_dra_are_the_kubelets(descriptor: Any, message: str, fields: dict[str, int]) -> None:
    found = descriptor.message_types_by_name[message]
    assert {field.name: field.number for field in found.fields} == fields


def test_the_services_of_dra_are_found_under_the_kubelets_names() -> None:
    services = [one for each in (dra, dra_health, registration) for one in each.DESCRIPTOR.services_by_name.values()]
    assert sorted(service.full_name for service in services) == [
        "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
        "pluginregistration.Registration",
        "v1alpha1.DRAResourceHealth",
    ]
