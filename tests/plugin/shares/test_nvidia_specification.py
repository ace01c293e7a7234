"""What is read of NVIDIA's CDI specifications, whoever wrote them."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plugin.gpus.gpu import MigInstance
from plugin.shares.nvidia_specification import LARGEST_BYTES, NvidiaSpecification, SpecificationError, parse
from plugin.simulated.gpus import simulated_gpus

SIMULATED = simulated_gpus("2xH200")
A, B = (replace(gpu, minor=gpu.index) for gpu in SIMULATED)


def node(minor: int, directory: str = "/dev") -> dict[str, Any]:
    path = {"path": f"/dev/nvidia{minor}"}
    return path if directory == "/dev" else path | {"hostPath": f"{directory}/nvidia{minor}"}


def device(name: str, *minors: int, directory: str = "/dev", **edits: Any) -> dict[str, Any]:
    nodes = [*(node(minor, directory) for minor in minors), {"path": "/dev/dri/card1"}]
    return {"name": name, "containerEdits": {"deviceNodes": nodes, **edits}}


def specification(*devices: dict[str, Any], driver: str = "580.95.05", **changes: Any) -> dict[str, Any]:
    """As nvidia-ctk writes it, in short."""
    library = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}"
    edits = {
        "env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": "/dev/nvidiactl"}, {"path": "/dev/nvidia-uvm"}],
        "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook"]}],
        "mounts": [{"hostPath": library, "containerPath": library, "options": ["ro", "nosuid", "nodev", "rbind"]}],
    }
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "devices": list(devices),
        "containerEdits": edits,
    } | changes


def both() -> dict[str, Any]:
    named = [device(name, minor) for minor, gpu in enumerate((A, B)) for name in (str(minor), gpu.uuid)]
    return specification(*named, device("all", 0, 1))


def written(of: Any, *, as_json: bool = False) -> bytes:
    return json.dumps(of).encode() if as_json else b"---\n" + yaml.safe_dump(of).encode()


def read(of: Any, *, as_json: bool = False) -> NvidiaSpecification:
    found = parse(written(of, as_json=as_json))
    assert found is not None
    return found


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "yaml"])
def test_a_gpu_is_the_device_with_its_uuid(*, as_json: bool) -> None:
    found = read(both(), as_json=as_json)
    assert (found.device_of(A), found.device_of(B)) == (A.uuid, B.uuid)
    assert found.driver == "580.95.05"


@pytest.mark.parametrize("name", ["{}", "gpu{}"], ids=["index", "type and index"])
def test_a_gpu_is_the_device_with_its_index_where_there_are_no_uuids(name: str) -> None:
    found = read(specification(device(name.format(0), 0), device(name.format(1), 1), device("all", 0, 1)))
    assert (found.device_of(A), found.device_of(B)) == (name.format(0), name.format(1))


def test_an_index_is_of_the_gpu_whose_node_it_brings() -> None:
    found = read(specification(device("0", 1), device("1", 0)))
    assert (found.device_of(A), found.device_of(B)) == ("1", "0")


def test_a_device_that_brings_another_gpu_is_not_this_one() -> None:
    """The nodes of GPUs can be numbered otherwise after a boot, and the file be of before."""
    stale = read(specification(device(A.uuid, 1), device(B.uuid, 0)))
    assert (stale.device_of(A), stale.device_of(B)) == (None, None)


@pytest.mark.parametrize("name", ["all", "0:0", "MIG-c9588be7", "mig0:0", "x"])
def test_what_is_all_gpus_or_a_part_of_one_is_no_gpu(name: str) -> None:
    assert read(specification(device(name, 0))).device_of(A) is None


def test_a_device_of_two_gpus_is_neither() -> None:
    assert read(specification(device(A.uuid, 0, 1))).device_of(A) is None


def test_nodes_are_those_of_the_host() -> None:
    inside = {"path": "/dev/nvidia0", "hostPath": "/run/nvidia/driver/dev/nvidia1"}
    found = read(specification({"name": B.uuid, "containerEdits": {"deviceNodes": [inside]}}))
    assert found.device_of(B) == B.uuid
    assert read(specification(device(A.uuid, 0, directory="/run/nvidia/driver/dev"))).device_of(A) == A.uuid


def test_a_simulated_gpu_is_a_device_by_its_uuid_alone() -> None:
    simulated = SIMULATED[0]
    assert read(specification(device(simulated.uuid, 7))).device_of(simulated) == simulated.uuid
    assert read(specification(device("0", 0))).device_of(simulated) is None


@pytest.mark.parametrize(
    "kind", ["management.nvidia.com/gpu", "k8s.device-plugin.nvidia.com/gpu", "gpu-share.dev/vgpu"]
)
def test_other_kinds_are_no_matter(kind: str) -> None:
    assert parse(written(specification(device("all", 0, 1), kind=kind))) is None


def test_a_specification_that_gives_gpus_to_every_container_is_not_used() -> None:
    edits = {"deviceNodes": [{"path": "/dev/nvidiactl"}, node(1)]}
    with pytest.raises(SpecificationError, match="gives GPUs to every container"):
        parse(written(specification(device(A.uuid, 0), containerEdits=edits)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"kind: nvidia.com/gpu",
        b"\xff\xfe",
        b"a: &a [*a]",
        b"!!python/object:os.system {}",
        b"a: 1\na: 2",
        b"{" * 100_000,
        b"[" * 100_000,
        b"- " * 50_001,
        b'{"a":' * 5000,
        written(specification(device("0", 0)))[:-40],
        written(specification(device("0", 0)), as_json=True)[:-40],
        written(specification(device("0", 0)) | {"devices": {"name": "0"}}),
        written(specification({"name": 0, "containerEdits": {}})),
        written(specification({"name": "0"})),
        written(specification(device("0", 0), deviceNodes=None) | {"cdiVersion": None}),
        b"#" + b"x" * LARGEST_BYTES,
    ],
)
def test_what_is_no_specification_is_an_error_in_one_line(content: bytes) -> None:
    with pytest.raises(SpecificationError) as error:
        parse(content)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:-\"'&*!,#\n abkind0", max_size=200).map(str.encode))
def test_nothing_but_a_specification_error_comes_of_what_others_write(content: bytes) -> None:
    with suppress(SpecificationError):
        parse(content)


def capability(number: int) -> dict[str, str]:
    return {"path": f"/dev/nvidia-caps/nvidia-cap{number}"}


def of_instance(name: str, minor: int, *numbers: int) -> dict[str, Any]:
    return {"name": name, "containerEdits": {"deviceNodes": [node(minor), *map(capability, numbers)]}}


INSTANCE = replace(
    A,
    uuid="MIG-c9588be7-f09d-53b6-8107-cc5c948e69fc",
    instance=MigInstance(
        profile="1g.10gb", parent_uuid=A.uuid, gpu_instance=1, compute_instance=0, capabilities=(12, 13)
    ),
)


@pytest.mark.parametrize(
    ("devices", "name"),
    [
        ([of_instance("0:0", 0, 12, 13), of_instance("0:1", 0, 21, 22)], "0:0"),
        ([of_instance("0:0", 0, 21, 22), of_instance("0:1", 0, 12, 13)], "0:1"),
        ([of_instance("mig0:0", 0, 12, 13), of_instance(INSTANCE.uuid, 0, 12, 13)], INSTANCE.uuid),
        ([of_instance(INSTANCE.uuid, 0, 21, 22)], None),  # of before it was made anew
        ([of_instance("0:0", 1, 12, 13)], None),
        ([of_instance("0:0", 0, 12)], None),
        ([of_instance("0:0", 0, 12, 13, 21)], None),
        ([device("0", 0), device(A.uuid, 0)], None),  # all of its GPU
        ([of_instance("all", 0, 12, 13)], None),
    ],
)
def test_the_device_of_an_instance_brings_its_own_nodes_and_no_others(
    devices: list[dict[str, Any]], name: str | None
) -> None:
    assert read(specification(*devices)).device_of(INSTANCE) == name


def test_the_device_of_a_gpu_is_none_of_its_instances() -> None:
    found = read(specification(of_instance("0", 0, 12, 13), of_instance("0:0", 0, 12, 13)))
    assert found.device_of(A) is None


def test_where_the_kernel_lists_no_capabilities_the_uuid_alone_names_an_instance() -> None:
    unknown = replace(INSTANCE, instance=replace(INSTANCE.instance, capabilities=())) if INSTANCE.instance else A
    found = read(specification(of_instance("0:0", 0, 12, 13), of_instance(INSTANCE.uuid, 0, 12, 13)))
    assert found.device_of(unknown) == INSTANCE.uuid


def test_a_specification_that_gives_capabilities_to_every_container_is_none() -> None:
    edits = {"deviceNodes": [capability(1)]}
    with pytest.raises(SpecificationError):
        read(specification(device("0", 0), containerEdits=edits))
