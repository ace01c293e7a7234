from pathlib import Path

import pytest

from plugin.device_plugin.v1beta1 import api_pb2
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
        ("ContainerResources", {"name": 1, "devices": 2}),
        ("ContainerDevices", {"resource_name": 1, "device_ids": 2}),
    ],
)
def test_the_field_numbers_of_pod_resources_are_the_kubelets(message: str, fields: dict[str, int]) -> None:
    descriptor = podresources.DESCRIPTOR.message_types_by_name[message]
    assert {field.name: field.number for field in descriptor.fields} == fields
    assert [service.full_name for service in podresources.DESCRIPTOR.services_by_name.values()] == [
        "v1.PodResourcesLister"
    ]
