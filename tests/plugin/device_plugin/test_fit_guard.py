"""When what may be shown takes effect, who hears of it before what, and what a request hears that fits nowhere."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic, sleep

import pytest

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.devices import Devices
from plugin.device_plugin.fit_guard import FitGuard
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.holder import Holder
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.occupied import Occupied
from plugin.device_plugin.rejection import Pause, Rejections
from plugin.device_plugin.service import DevicePluginService, Resource
from plugin.device_plugin.v1beta1 import api_pb2
from plugin.gpus.gpu import Pool, VGpuId
from plugin.shares.fit import Fit
from plugin.shares.strategy import Mps
from plugin.simulated.device_manager import PluginCallError
from tests.plugin.device_plugin.guarded_node import GuardedNode
from tests.plugin.device_plugin.test_service import allocate_request, ids, served
from tests.plugin.device_plugin.walk import NAME, ServiceAsPlugin


@dataclass
class Guarded:
    """Two GPUs of 10 and what is held of each; a kubelet follows."""

    pool: Pool
    several: bool = False  # a container may hold both
    now: float = 0.0
    waited: list[float] = field(default_factory=list)
    shown_while_waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        guard = FitGuard("pack", several=self.several, clock=lambda: self.now)
        self.devices = Devices(self.pool, resource=NAME, guard=guard, only_one="" if self.several else "by MPS")
        self.watch = self.devices.watch()
        self.rejections = Rejections(self.devices, wait=self._wait, clock=lambda: self.now)

    def hold(self, *counts: int, known: bool = True) -> "Guarded":
        """Have so many of each GPU held from now on."""
        held = {
            gpu.uuid: {
                str(VGpuId(gpu.uuid, index)): Holder(
                    container="team/a/main", since_seconds=0, resource=NAME, of=10, gpu=gpu.uuid
                )
                for index in range(count)
            }
            for gpu, count in zip(self.pool.gpus, counts, strict=True)
        }
        self.devices.set_held(Occupied(by_gpu=held, is_known=known))
        return self

    def after(self, seconds: float) -> "Guarded":
        self.now += seconds
        return self

    @property
    def shown(self) -> tuple[int, ...]:
        """What of each GPU is free and shown."""
        return tuple(one.free - one.hidden for one in self.devices.rooms())

    def _wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.shown_while_waiting.append(sum(self.shown))
        self.now += seconds


@pytest.fixture
def guarded(pool: Pool) -> Guarded:
    return Guarded(pool)


def test_nothing_is_hidden_before_it_is_known_who_holds_what(guarded: Guarded) -> None:
    guarded.hold(7, 9, known=False)
    assert len(guarded.devices.seen) == 20
    assert guarded.devices.rooms() == ()


def test_what_must_be_hidden_from_the_start_is_never_seen(pool: Pool) -> None:
    first = Guarded(pool)
    first.watch.close()
    assert first.hold(7, 9).shown == (3, 0)


def test_more_is_shown_at_once_and_less_a_second_later(guarded: Guarded) -> None:
    guarded.hold(7, 10).hold(7, 9)
    assert guarded.shown == (3, 1)
    assert guarded.after(0.9).hold(7, 9).shown == (3, 1)
    assert guarded.after(0.1).hold(7, 9).shown == (3, 0)
    assert guarded.hold(5, 9).shown == (5, 0)


def test_what_is_hidden_changes_place_at_once(guarded: Guarded) -> None:
    guarded.watch.close()
    assert guarded.hold(0, 0).shown == (10, 6)
    guarded.watch = guarded.devices.watch()
    assert guarded.hold(6, 0).shown == (0, 10)


def test_what_need_not_change_stays_shown(guarded: Guarded) -> None:
    guarded.watch.close()
    seen = guarded.hold(0, 0).devices.seen
    assert guarded.hold(0, 0).devices.seen == seen


def test_a_request_that_fits_nowhere_waits_longer_each_time_while_what_fits_is_shown(guarded: Guarded) -> None:
    guarded.hold(6, 7).after(1).hold(6, 7).hold(6, 6)  # 5 of 8 are shown, and 4 fit
    assert sum(guarded.shown) == 5
    words = guarded.rejections.reject(5)
    for _ in range(4):
        guarded.rejections.reject(5)
    one, other = (gpu.uuid for gpu in guarded.pool.gpus)
    assert words == f"free are 4 on {one}, 4 on {other}: ask for at most 4, or make room for 5 on one GPU"
    assert guarded.waited == [0.5, 1.0, 2.0, 2.0, 2.0]
    assert guarded.shown_while_waiting == [4] * 5


def test_after_a_rejection_the_kubelet_sees_what_it_saw_for_a_second(guarded: Guarded) -> None:
    guarded.hold(6, 7).after(1).hold(6, 7).hold(6, 6)
    guarded.rejections.reject(5)
    assert sum(guarded.shown) == 5
    assert sum(guarded.after(0.9).hold(6, 6).shown) == 5
    assert sum(guarded.after(0.1).hold(6, 6).shown) == 4


def test_a_request_for_which_there_is_room_by_now_waits_for_nothing(guarded: Guarded) -> None:
    guarded.hold(5, 6).after(1).hold(5, 6).hold(5, 4)  # what ended was on the GPU of which 4 were hidden
    assert guarded.rejections.reject(6) == "there is room by now: try again"
    assert guarded.waited == []
    assert max(guarded.shown) == 6


@pytest.mark.parametrize("size", [11, 15, 20, 30])
@pytest.mark.parametrize("several", [False, True])
def test_a_request_that_no_gpu_can_have_waits_and_is_told_of_another_number(
    pool: Pool, size: int, *, several: bool
) -> None:
    here = Guarded(pool, several=several).hold(0, 0)
    words = here.rejections.reject(size)
    if several and size == len(pool.gpus) * 10:
        assert words == "there is room by now: try again"
        return
    assert here.waited == [0.5]
    if several and size % 10 == 0:
        assert "ask for at most 10, or make room for 30" in words
        return
    assert words == (
        "each has 10: ask for at most that, or for whole GPUs; if gpu-share granted it, the node goes by another "
        "vgpusPerGpu: `gpu-share plugin status` there says why"
    )


def test_a_request_with_room_only_where_the_kubelet_does_not_align_it_waits(guarded: Guarded) -> None:
    guarded.hold(5, 4).devices.alignment.is_seen = True
    assert guarded.rejections.reject(6) == "there is room on NUMA nodes that the kubelet has not chosen"
    assert guarded.rejections.why(6) == "there is room on NUMA nodes that the kubelet has not chosen"
    assert guarded.waited == [0.5]


def test_the_kubelet_is_sent_what_is_shown_again_before_it_hears_of_the_rejection(guarded: Guarded) -> None:
    guarded.watch.close()
    watch = guarded.hold(7, 10).devices.watch()

    def follow() -> None:
        for _ in watch:
            sleep(0.03)

    with ThreadPoolExecutor() as threads, closing(watch):
        threads.submit(follow)
        guarded.hold(7, 9)
        guarded.rejections.reject(4)
        assert guarded.shown == (3, 1)
        assert guarded.devices.wait_until_told(within_seconds=0)


def test_pauses_begin_anew_when_nothing_was_rejected_for_a_while() -> None:
    pause = Pause()
    assert [pause.next(now) for now in (0, 1, 3, 32.9, 70)] == [0.5, 1.0, 2.0, 2.0, 0.5]


def test_where_nothing_is_free_the_rejection_says_so(guarded: Guarded) -> None:
    assert guarded.hold(10, 10).rejections.reject(1) == "nothing is free on a healthy GPU of this node"


def test_of_many_gpus_those_with_most_room_are_named(tmp_path: Path) -> None:
    fit = Fit(vgpus_per_gpu=10, policy="pack", several=False)
    here = GuardedNode(gpus=8, fit=fit, random=Random(1), directory=tmp_path)  # noqa: S311 - no secret
    said: list[str] = []
    for _ in range(8):
        while here.seen < 6:
            here.look()
            here.tick()
        here.send(6)
    here.status = 80  # as if all had been shown
    here.devices.show_again(frozenset(device.id for device in here.manager.devices(NAME)))
    here.tell()
    here.send(5, expects=said.append)
    (words,) = said
    assert words.count("4 on GPU-") == 4
    assert "and less on 4 more: ask for at most 4" in words


def test_the_kubelet_is_sent_what_an_allocation_changes_before_its_answer(directory: Path, pool: Pool) -> None:
    devices = Devices(pool, resource=NAME, guard=FitGuard("pack", several=False))
    held = HeldVgpus(Holdings(lambda: (), kubelet=directory, checkpoint=Checkpoint(vgpus_per_gpu=10)))
    held.refresh()
    held.follow(devices, are_divided=True)
    resource = Resource(name=NAME, devices=devices, sharing=Mps("/p"), allocation_policy="pack", held=held)
    with served(directory, resource) as stub:
        stream = stub.ListAndWatch(api_pb2.Empty())
        assert _healthy(next(stream)) == 16
        for _ in range(30):
            stub.Allocate(allocate_request(ids(pool, 0, *range(7))))
            assert devices.wait_until_told(within_seconds=0)
            assert _healthy(next(stream)) == 17  # 7 that are held, and 10 of the others
            held.preferred(devices, "pack", available=ids(pool, 0, *range(7)), must_include=[], size=1)
            devices.show_less()
            assert _healthy(next(stream)) == 16
        stream.cancel()


def test_a_session_that_ends_lets_nobody_wait(pool: Pool) -> None:
    devices = Devices(pool, resource=NAME, guard=FitGuard("pack", several=False))
    resource = Resource(name=NAME, devices=devices, sharing=Mps("/p"), allocation_policy="pack")
    service = DevicePluginService(resource, on_end=lambda _: None)
    service.close()
    begin = monotonic()
    for _ in range(5):  # of which each would wait for longer than the one before: 7.5 s together
        with pytest.raises(PluginCallError, match="more than a GPU of this node has"):
            ServiceAsPlugin(service).allocate([*ids(pool, 0, *range(9)), *ids(pool, 1, *range(2))])
    assert monotonic() - begin < 3


def _healthy(message: api_pb2.ListAndWatchResponse) -> int:
    return sum(device.health == "Healthy" for device in message.devices)
