"""What lies ready in the directory of CDI specifications as GPUs come, and as their number of vGPUs changes."""

from pathlib import Path

import pytest

from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holdings import Holdings
from plugin.errors import HandoverError
from plugin.gpus.gpu import VGpuId
from plugin.pod_resources.tenants import Tenant
from plugin.settings import Settings
from plugin.shares import cdi_directory
from policies.cluster import Cluster
from tests.plugin.device_plugin.advertised import GPUS, seen
from tests.plugin.health.watched_node import SETTINGS, resources_of
from tests.plugin.shares.cdi_runtime import read_directory

CLUSTER = Cluster(vgpus_per_gpu=4, handover=("cdi",))


def numbers(directory: Path, *, gpu: int) -> set[int]:
    """Say by which numbers there are devices of a GPU."""
    names = (name.partition(f"={GPUS[gpu].uuid}-1of") for name in read_directory(directory))
    return {int(number) for _, found, number in names if found}


def test_what_a_container_needs_is_there_before_the_kubelet_hears_of_a_gpu(tmp_path: Path) -> None:
    settings = Settings(**{**SETTINGS, "cdi_dir": tmp_path})
    ready: list[set[int]] = []
    known = resources_of(settings, CLUSTER, serve=lambda _: ready.append(numbers(tmp_path, gpu=0)))
    known.publish(seen(GPUS[0]))
    assert ready == [{4}]
    assert numbers(tmp_path, gpu=1) == set()
    known.publish(seen(*GPUS[:2]))
    assert numbers(tmp_path, gpu=1) == {4}


def test_what_is_held_of_an_earlier_number_is_ready_until_it_ends_also_of_a_gpu_that_appears_later(
    tmp_path: Path,
) -> None:
    vgpu = VGpuId(GPUS[1].uuid, 0)
    tenants = [Tenant(namespace="n", pod="p", container="c", vgpus=(vgpu,))]
    holdings = Holdings(lambda: tuple(tenants), kubelet=tmp_path / "kubelet.sock")
    holdings.allocated({str(vgpu): GPUS[1].uuid}, resource="gpu-share.dev/vgpu", of=10)
    held = HeldVgpus(holdings)
    held.refresh()
    settings = Settings(**{**SETTINGS, "cdi_dir": tmp_path})
    known = resources_of(settings, CLUSTER, serve=lambda _: None, held=held)
    known.publish(seen(GPUS[0]))
    assert numbers(tmp_path, gpu=1) == set()
    known.publish(seen(*GPUS[:2]))
    assert numbers(tmp_path, gpu=1) == {4, 10}
    known.divide_by(5)
    assert numbers(tmp_path, gpu=1) == {5, 10}
    tenants.clear()
    held.refresh()
    known.restore()
    assert numbers(tmp_path, gpu=1) == {5}


def test_a_number_is_taken_up_where_only_what_nobody_needs_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldVgpus(Holdings(lambda: (), kubelet=tmp_path / "kubelet.sock"))
    held.refresh()
    settings = Settings(**{**SETTINGS, "cdi_dir": tmp_path})
    known = resources_of(settings, CLUSTER, serve=lambda _: None, held=held)
    known.publish(seen(GPUS[0]))
    written, write = [], cdi_directory.write_specification

    def once(directory: Path, resource: str, content: bytes) -> None:
        written.append(resource)
        if len(written) > 1:
            raise HandoverError("no space left")
        write(directory, resource, content)

    monkeypatch.setattr(cdi_directory, "write_specification", once)
    known.divide_by(5)
    assert [offer.vgpus_per_gpu for offer in known.offers()] == [5]
    assert numbers(tmp_path, gpu=0) == {4, 5}
    monkeypatch.undo()
    known.restore()
    known.divide_by(4)
    assert numbers(tmp_path, gpu=0) == {4}


def test_a_number_is_taken_up_once_though_its_specification_cannot_be_written_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = HeldVgpus(Holdings(lambda: (), kubelet=tmp_path / "kubelet.sock"))
    held.refresh()
    settings = Settings(**{**SETTINGS, "cdi_dir": tmp_path})
    known = resources_of(settings, CLUSTER, serve=lambda _: None, held=held)
    known.publish(seen(GPUS[0]))
    rest = [cdi_directory.write_specification]

    def lost_then_full(directory: Path, resource: str, content: bytes) -> None:
        if not rest:
            raise HandoverError("no space left")
        rest.pop()(directory, resource, content)
        for path in directory.iterdir():
            path.unlink()

    monkeypatch.setattr(cdi_directory, "write_specification", lost_then_full)
    known.divide_by(5)
    assert [offer.vgpus_per_gpu for offer in known.offers()] == [5]
    assert [record.reason for record in caplog.records if hasattr(record, "reason")] == ["no space left"]
    with pytest.raises(HandoverError, match="no space left"):
        known.restore()
    monkeypatch.undo()
    known.restore()
    assert numbers(tmp_path, gpu=0) == {5}


def test_what_containers_would_need_of_a_gpu_goes_when_another_allocator_gets_it(tmp_path: Path) -> None:
    held = HeldVgpus(Holdings(lambda: (), kubelet=tmp_path / "kubelet.sock"))
    held.refresh()
    settings = Settings(**{**SETTINGS, "cdi_dir": tmp_path})
    known = resources_of(settings, CLUSTER, serve=lambda _: None, held=held)
    known.publish(seen(*GPUS[:2]))
    assert known.withdraw([GPUS[1].uuid]) == {GPUS[1].uuid}
    known.publish(seen(GPUS[0]))
    assert (numbers(tmp_path, gpu=0), numbers(tmp_path, gpu=1)) == ({4}, set())
