"""Who has which share, added up from what the kubelet says, and kept from one plugin to the next."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.occupancy_watch import OccupancyContext, OccupancyWatch, occupancy
from plugin.pod_resources.occupancy import FILE, GpuOccupancy, NodeOccupancy, read_occupancy
from plugin.pod_resources.tenants import Tenant
from plugin.shares.offer import Offer, Outlived
from plugin.simulated.gpus import simulated_gpus

GPU, OTHER = simulated_gpus("2xH200")
VGPU = "gpu-share.dev/vgpu"
BY_KUBELET = Offer(gpu=GPU, strategy="mps", allocation="device-plugin", resource=VGPU, device="", vgpus_per_gpu=10)
BY_DRA = Offer(gpu=GPU, strategy="mps", allocation="dra", resource="", device="model-t4", vgpus_per_gpu=3)


def ids(*indices: int, gpu_uuid: str = GPU.uuid) -> tuple[VGpuId, ...]:
    return tuple(VGpuId(gpu_uuid, index) for index in indices)


def tenant(pod: str, vgpus: tuple[VGpuId, ...] = (), devices: tuple[str, ...] = (), *given_by: str) -> Tenant:
    return Tenant(
        namespace="team-a", pod=pod, container="main", vgpus=vgpus, devices=devices, given_by=frozenset(given_by)
    )


def of_gpu(offer: Offer, *tenants: Tenant, devices: dict[str, dict[str, int]] | None = None) -> GpuOccupancy:
    known = devices or {}
    found = occupancy([offer], tenants, lambda name: known.get(name, {}), since=lambda _uuid, _tenant: None)
    return found[offer.gpu.uuid]


def test_what_processes_use_of_a_pod_that_is_gone_is_not_free_whoever_is_named() -> None:
    by_dra = replace(BY_DRA, outlived=Outlived(Fraction(1, 3), Fraction(1, 3)))
    for tenants in ((), (tenant("left", (), ("third",)),)):
        found = of_gpu(by_dra, *tenants, devices={"third": {GPU.uuid: 333}})
        assert (found.outlived, found.free, found.largest_free) == (333, 333, 333)
    assert of_gpu(replace(BY_DRA, outlived=Outlived(Fraction(2), Fraction(-1)))).free == 0


class Kubelet:
    """What the kubelet says, and what the watch has written."""

    def __init__(self, state_dir: Path) -> None:
        self.tenants: Sequence[Tenant] | None = ()
        self.now_seconds = 100.0
        self._state_dir = state_dir

    def watch(self, boot_id: str = "one") -> OccupancyWatch:
        return OccupancyWatch(
            OccupancyContext(
                state_dir=self._state_dir,
                boot_id=boot_id,
                offers=lambda: [BY_KUBELET],
                read=self._read,
                parts_of=lambda _device: {},
                clock=lambda: self.now_seconds,
            )
        )

    def written(self, boot_id: str = "one") -> NodeOccupancy:
        read = read_occupancy(self._state_dir, boot_id=boot_id)
        assert read is not None
        return read

    def since(self) -> dict[str, str | None]:
        return {one.pod: one.since for one in self.written().gpus[GPU.uuid].occupants}

    def _read(self) -> Sequence[Tenant]:
        if self.tenants is None:
            raise TenantsError("the kubelet did not list pod resources")
        return self.tenants


@pytest.fixture
def kubelet(tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path)


def test_what_is_left_of_a_gpu_is_free_or_hidden_and_the_rest_is_granted() -> None:
    offer = replace(BY_KUBELET, left=(6, 2))
    found = of_gpu(offer, tenant("a", ids(0, 1, 2)), tenant("b", ids(5)), tenant("c", ids(0, gpu_uuid=OTHER.uuid)))
    assert (found.parts, found.vgpus_per_gpu) == (10, 10)
    assert (found.granted, found.hidden, found.free, found.largest_free) == (4, 2, 4, 4)
    assert [(one.pod, one.parts, one.thread_percentage) for one in found.occupants] == [("a", 3, 30), ("b", 1, 10)]


def test_vgpus_of_an_earlier_number_are_counted_in_thousandths_and_keep_their_limits() -> None:
    numbers = {str(one): 10 for one in ids(0, 1, 2)}
    offer = replace(BY_KUBELET, vgpus_per_gpu=7, left=(4, 1), advertised=6, numbers=numbers)
    found = of_gpu(offer, tenant("a", ids(0, 1, 2)))
    assert (found.parts, found.vgpus_per_gpu, found.advertised) == (1000, 7, 6)
    assert (found.hidden, found.free, found.largest_free) == (142, 429, 428)
    assert [(one.parts, one.thread_percentage) for one in found.occupants] == [(300, 30)]


def test_by_dra_a_share_is_in_thousandths_and_the_largest_one_is_of_the_grid() -> None:
    devices = {"gpu-a-333m-0": {GPU.uuid: 333}}
    found = of_gpu(BY_DRA, tenant("a", devices=("gpu-a-333m-0", "unknown")), devices=devices)
    assert (found.granted, found.free, found.largest_free) == (333, 667, 666)
    (one,) = found.occupants
    assert (one.parts, one.thread_percentage) == (333, 33)


@pytest.mark.parametrize(
    ("held", "left", "are_all"),
    [
        (ids(0, 1, 2), (7, 0), True),
        (ids(0, 1, 2, 5), (6, 0), False),  # an init container has one, which the kubelet does not name
        (ids(0, 1, 2), (0, 0), False),  # nobody knows what else is held: nothing is free
    ],
)
def test_all_are_named_if_those_whom_the_kubelet_names_hold_all_that_is_held(
    held: tuple[VGpuId, ...], left: tuple[int, int], *, are_all: bool
) -> None:
    offer = replace(BY_KUBELET, left=left, numbers={str(one): 10 for one in held})
    assert of_gpu(offer, tenant("a", ids(0, 1, 2))).all_named is are_all


@pytest.mark.parametrize(("claimed", "are_all"), [({"gpu-a-333m-0"}, True), ({"gpu-a-333m-0", "gpu-a-333m-1"}, False)])
def test_by_dra_all_are_named_if_they_have_all_devices_of_claims(claimed: set[str], *, are_all: bool) -> None:
    offer, devices = replace(BY_DRA, claimed=frozenset(claimed)), {"gpu-a-333m-0": {GPU.uuid: 333}}
    assert of_gpu(offer, tenant("a", devices=("gpu-a-333m-0",)), devices=devices).all_named is are_all


@pytest.mark.parametrize(("parts", "largest"), [(0, 0), (332, 0), (333, 333), (999, 666), (1000, 1000)])
def test_the_largest_share_by_dra_is_one_that_there_is(parts: int, largest: int) -> None:
    assert BY_DRA.largest(parts) == largest


def test_limits_are_those_that_the_container_was_told() -> None:
    (by_kubelet,) = of_gpu(BY_KUBELET, tenant("a", ids(0, 1, 2))).occupants
    (by_turns,) = of_gpu(replace(BY_KUBELET, strategy="time-slicing"), tenant("a", ids(0, 1, 2))).occupants
    assert by_kubelet.memory_limit_mib == (GPU.memory_bytes // 2**20 - 128) * 3 // 10
    assert (by_turns.memory_limit_mib, by_turns.thread_percentage) == (GPU.memory_bytes // 2**20 * 3 // 10, None)


def test_more_than_there_is_of_a_gpu_is_never_said_to_be_free() -> None:
    found = of_gpu(BY_KUBELET, tenant("a", ids(*range(20))))
    assert (found.granted, found.free, found.occupants[0].parts) == (10, 0, 10)


def test_since_when_is_known_of_those_alone_that_came_while_somebody_looked(kubelet: Kubelet) -> None:
    watch = kubelet.watch()
    kubelet.tenants = [tenant("old", ids(0))]
    watch.look()
    assert kubelet.since() == {"old": None}
    kubelet.tenants = [tenant("old", ids(0)), tenant("new", ids(1))]
    watch.look()
    told = kubelet.since()
    assert told["old"] is None
    assert told["new"] is not None
    kubelet.watch().look()  # the next plugin
    assert kubelet.since() == told


@pytest.mark.parametrize(
    ("now", "is_another"),
    [
        (tenant("web-0", ids(0, 1, 2), (), "8"), True),
        (tenant("web-0", ids(3, 4), (), "8"), True),
        (tenant("web-0", ids(0, 1), (), "8"), True),
        (tenant("web-0", ids(0, 1), (), "7"), False),
        (tenant("web-0", ids(0, 1)), False),
    ],
)
def test_since_when_is_that_of_the_pod_of_now_and_not_of_an_earlier_one_of_its_name(
    kubelet: Kubelet, now: Tenant, *, is_another: bool
) -> None:
    watch = kubelet.watch()
    kubelet.tenants = [tenant("web-0", ids(0, 1), (), "7")]
    watch.look()
    assert kubelet.since() == {"web-0": None}
    kubelet.tenants = [now]
    watch.look()
    assert (kubelet.since()["web-0"] is not None) is is_another


def test_an_allocation_that_is_not_known_for_a_moment_is_told_from_the_next_one(kubelet: Kubelet) -> None:
    watch = kubelet.watch()
    for call in ("7", "", "8"):
        kubelet.tenants = [tenant("web-0", ids(0), (), *filter(None, [call]))]
        watch.look()
        assert (kubelet.since()["web-0"] is not None) is (call == "8")


def test_what_another_boot_has_seen_is_not_known(kubelet: Kubelet) -> None:
    watch = kubelet.watch()
    watch.look()
    kubelet.tenants = [tenant("a", ids(0))]
    watch.look()
    kubelet.watch(boot_id="two").look()
    (one,) = kubelet.written("two").gpus[GPU.uuid].occupants
    assert one.since is None


def test_a_kubelet_that_says_nothing_any_more_leaves_what_it_said_with_its_age_and_the_reason(
    kubelet: Kubelet,
) -> None:
    watch = kubelet.watch()
    kubelet.tenants = [tenant("a", ids(0, 1))]
    watch.look()
    kubelet.tenants, kubelet.now_seconds = None, 200.0
    watch.look()
    written = kubelet.written()
    assert (written.looked_seconds, written.unknown) == (100.0, "the kubelet did not list pod resources")
    assert [one.parts for one in written.gpus[GPU.uuid].occupants] == [2]


def test_a_kubelet_that_has_said_nothing_yet_leaves_figures_out_and_never_0(kubelet: Kubelet) -> None:
    kubelet.tenants = None
    kubelet.watch().look()
    (gpu,) = kubelet.written().gpus.values()
    assert (gpu.parts, gpu.granted, gpu.free, gpu.hidden, gpu.largest_free) == (10, None, None, None, None)


def test_a_directory_that_cannot_be_written_to_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watch = Kubelet(tmp_path / "missing").watch()
    watch.look()
    watch.look()
    (record,) = caplog.records
    assert "missing" in vars(record)["reason"]


def test_what_is_no_record_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"boot_id": "one", "gpus": {"GPU-1": []}}')
    assert read_occupancy(tmp_path, boot_id="one") is None
