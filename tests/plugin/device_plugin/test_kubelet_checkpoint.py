"""What the kubelet keeps of the plugin's answers is read back, and nothing else is believed."""

from pathlib import Path

import pytest

from plugin.device_plugin.kubelet_checkpoint import Kept, annotations, read_answers, read_kept
from plugin.device_plugin.v1beta1 import api_pb2
from plugin.gpus.gpu import VGpuId
from plugin.shares.allocation import Allocation
from plugin.shares.parts_file import Held
from plugin.simulated.gpus import simulated_gpus
from tests.plugin.device_plugin.kubelet_file import FILE, Entry, entry, write_checkpoint
from tests.plugin.device_plugin.walk import NAME

ONE, OTHER = simulated_gpus("2xL4")
UID = "83cf69b5-8516-4764-9ba6-c9465c9d09f4"  # in the file of a kubelet
FIRST, SECOND, THIRD = (VGpuId(ONE.uuid, index) for index in range(3))


def answer(*gpus: str, of: int = 10, cdi: str = "", number: int = 0) -> bytes:
    on = tuple(gpu for gpu in (ONE, OTHER) if gpu.uuid in gpus)
    given = Allocation(gpus=on, vgpus=1, vgpus_per_gpu=of, number=number)
    devices = [api_pb2.CDIDevice(name=cdi)] if cdi else []
    return api_pb2.ContainerAllocateResponse(annotations=annotations(given), cdi_devices=devices).SerializeToString()


def of(*ids: VGpuId, given: bytes, **more: str) -> Entry:
    return entry(NAME, [str(one) for one in ids], given, **more)


def read(directory: Path, *entries: Entry) -> dict[VGpuId, Held] | None:
    write_checkpoint(directory, entries)
    found = read_answers(directory, lambda name: name == NAME)
    return None if found is None else dict(found)


def held(gpu: str | None, *, number: int = 10, pod: int = 1, uid: str = "0a1b") -> Held:
    return Held(resource=NAME, of=number, gpu=gpu, pod=pod, pod_uid=uid)


def test_an_answer_says_on_which_gpu_each_vgpu_is_and_what_it_is(tmp_path: Path) -> None:
    found = read(
        tmp_path, of(FIRST, SECOND, given=answer(OTHER.uuid, of=20)), entry("nvidia.com/gpu", ["GPU-a::0"], b"")
    )
    assert found == {FIRST: held(OTHER.uuid, number=20), SECOND: held(OTHER.uuid, number=20)}


def test_an_answer_is_ours_whatever_the_resource_was_called_then(tmp_path: Path) -> None:
    found = read(tmp_path, entry("example.com/earlier", [str(FIRST)], answer(OTHER.uuid)))
    assert found == {FIRST: Held(resource="example.com/earlier", of=10, gpu=OTHER.uuid, pod=1, pod_uid="0a1b")}


def test_what_a_kubelet_has_written_is_read(tmp_path: Path) -> None:
    gpu = "GPU-c9588be7-f09d-53b6-8107-cc5c948e69fc"  # with 0.2 of 10 on it, on Kubernetes 1.36.2
    (tmp_path / FILE).write_bytes((Path(__file__).parent / "kubelet_1_36_2.json").read_bytes())
    assert read_answers(tmp_path, lambda _: False) == {VGpuId(gpu, index): held("", uid=UID) for index in (0, 1)}


def test_several_gpus_have_as_many_each(tmp_path: Path) -> None:
    assert read(tmp_path, of(SECOND, FIRST, given=answer(ONE.uuid, OTHER.uuid, of=1))) == {
        FIRST: held("", number=1),
        SECOND: held(OTHER.uuid, number=1),
    }


def test_an_app_container_has_what_an_init_container_of_its_pod_had(tmp_path: Path) -> None:
    both = (of(FIRST, SECOND, given=answer(OTHER.uuid), container="init"), of(FIRST, given=answer(OTHER.uuid)))
    assert read(tmp_path, *both) == {FIRST: held(OTHER.uuid), SECOND: held(OTHER.uuid)}


@pytest.mark.parametrize(
    ("device", "by_cdi"), [(f"{NAME}={ONE.uuid}-1of10", True), (f"{NAME}=void", True), ("nvidia.com/gpu=0", False)]
)
def test_a_container_has_a_device_of_ours_where_one_of_its_answers_names_one(
    tmp_path: Path, device: str, *, by_cdi: bool
) -> None:
    entries = (of(FIRST, given=answer(ONE.uuid, cdi=device)), of(FIRST, given=answer(ONE.uuid), pod="2c3d"))
    for order in (entries, entries[::-1]):
        assert read(tmp_path, *order) == {FIRST: Held(resource=NAME, of=10, by_cdi=by_cdi)}


@pytest.mark.parametrize(
    ("visible", "devices", "by_variable"),
    [
        (ONE.uuid, [], True),
        ("void", [], False),  # device nodes in the answer
        ("void", [f"{NAME}={ONE.uuid}-1of10"], True),
        ("void", [f"nvidia.com/gpu={ONE.uuid}", f"{NAME}={ONE.uuid}-1of10", f"{NAME}=void"], False),
    ],
)
def test_whether_a_container_gets_its_gpu_by_nvidias_variable_is_read_of_its_answer(
    tmp_path: Path, visible: str, devices: list[str], *, by_variable: bool
) -> None:
    given = api_pb2.ContainerAllocateResponse.FromString(answer(ONE.uuid))
    given.envs["NVIDIA_VISIBLE_DEVICES"] = visible
    given.cdi_devices.extend(api_pb2.CDIDevice(name=one) for one in devices)
    theirs = api_pb2.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": "GPU-a"}).SerializeToString()
    ours = of(FIRST, given=given.SerializeToString())
    write_checkpoint(tmp_path, [entry("nvidia.com/gpu", ["GPU-a"], theirs), ours])
    assert read_kept(tmp_path) == Kept({str(FIRST): "0a1b", "GPU-a": "0a1b"}, 0, by_variable)


def test_the_last_answer_is_known_by_its_number(tmp_path: Path) -> None:
    init = of(FIRST, SECOND, given=answer(ONE.uuid, number=7), container="init")
    app = of(SECOND, given=answer(ONE.uuid, number=8))
    write_checkpoint(tmp_path, [app, init])
    assert read_kept(tmp_path) == Kept({str(FIRST): "0a1b", str(SECOND): "0a1b"}, 8, by_variable=False)


@pytest.mark.parametrize("is_listed_first", [True, False])
def test_what_went_to_another_gpu_after_an_init_container_is_on_both(tmp_path: Path, *, is_listed_first: bool) -> None:
    init = of(FIRST, given=answer(ONE.uuid, number=7), container="init")
    app = of(FIRST, given=answer(OTHER.uuid, number=8))
    found = read(tmp_path, *((init, app) if is_listed_first else (app, init)))
    assert found == {FIRST: Held(resource=NAME, of=10, gpu=OTHER.uuid, also=(ONE.uuid,), pod=1, pod_uid="0a1b", call=8)}


def test_of_two_answers_that_contradict_each_other_neither_is_believed(tmp_path: Path) -> None:
    found = read(tmp_path, of(FIRST, given=answer(ONE.uuid)), of(FIRST, given=answer(OTHER.uuid), pod="2c3d"))
    assert found == {FIRST: held(None, number=1, pod=0, uid="")}


def test_what_each_pod_has_is_told_apart(tmp_path: Path) -> None:
    init = of(FIRST, given=answer(ONE.uuid), container="init")
    found = read(tmp_path, init, of(SECOND, given=answer(ONE.uuid), pod="2c3d"), of(THIRD, given=answer(ONE.uuid)))
    assert found == {FIRST: held(""), SECOND: held("", pod=2, uid="2c3d"), THIRD: held("")}


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"\xff\xff",
        api_pb2.ContainerAllocateResponse(envs={"A": "B"}).SerializeToString(),
        *(
            api_pb2.ContainerAllocateResponse(annotations={"gpu-share.dev/held": text}).SerializeToString()
            for text in (
                "",
                "{",
                "[" * 100_000,
                '{"of":0,"gpus":["a"]}',
                '{"of":10,"gpus":[]}',
                '{"of":1,"gpus":["a","b"]}',
            )
        ),
    ],
)
def test_of_an_answer_that_does_not_say_it_nobody_knows(tmp_path: Path, given: bytes) -> None:
    assert read(tmp_path, of(FIRST, given=given)) == {FIRST: held(None, number=0)}


def test_a_kubelet_that_has_allocated_nothing_says_so(tmp_path: Path) -> None:
    assert read_answers(tmp_path, bool) == {}
    (tmp_path / FILE).write_text('{"Data":{"PodDeviceEntries":null,"RegisteredDevices":null},"Checksum":1}')
    assert read_answers(tmp_path, bool) == {}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"Data":{}}',
        '{"Data":{"PodDeviceEntries":[{"ResourceName":"a"}]}}',
        '{"Data":{"PodDeviceEntries":[{"ResourceName":"a","DeviceIDs":{},"AllocResp":"*"}]}}',
    ],
)
def test_a_file_that_no_kubelet_of_today_writes_is_not_taken_for_an_empty_one(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    assert read_answers(tmp_path, bool) is None
