from pathlib import Path

import pytest

from plugin.v1beta1 import api_pb2, generate


def test_the_stubs_are_what_the_generator_makes() -> None:
    assert generate.main(["--check"]) == 0


def test_a_stub_that_differs_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, text in generate.generated_files().items():
        (tmp_path / name).write_text(text if name != "api_pb2.pyi" else text + "#")
    monkeypatch.setattr(generate, "_FOLDER", tmp_path)
    assert generate.main(["--check"]) == 1
    assert capfd.readouterr().err == "api_pb2.pyi differ from api.proto: run python -m plugin.v1beta1.generate\n"
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_an_unknown_argument_is_bad_usage(capfd: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--chekc"]) == 2
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
