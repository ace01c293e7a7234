"""The driver of one node: from its GPUs to slices, and from a claim to what its containers receive."""

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Any

from plugin.dra.api_server import ApiError, ApiServer, is_gone, path_of_claim
from plugin.dra.calls import Call, Calls
from plugin.dra.checkpoint import HOLD_SECONDS, HeldDevice, Prepared, held
from plugin.dra.claims import Allocated, allocated_devices, wanted_devices
from plugin.dra.containers import held_device
from plugin.dra.devices import Device, devices_of, grids_of
from plugin.dra.grids import Grids
from plugin.dra.outliving import outlived
from plugin.dra.preparations import Preparations
from plugin.dra.publisher import Publisher, SliceWatch
from plugin.dra.server import DraServer
from plugin.dra.service import DeviceState, DraService, HealthService
from plugin.dra.slices import slice_specs
from plugin.errors import ClaimError, SocketError
from plugin.lifecycle import Threads
from plugin.shares.division import Division
from plugin.shares.handover import HandoverSettings
from plugin.shares.offer import Offer
from plugin.shares.strategy import SharedGpu
from plugin.usage.pod_cgroups import HasProcesses
from policies.cluster import Cluster
from policies.contract import DRA, DRIVER

_log = logging.getLogger(__name__)
_ASK_AGAIN_SECONDS = 0.5
_LOOK_AGAIN_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class DraSettings:
    """Where the driver meets the kubelet and the container runtime."""

    node: str
    plugins_dir: Path  # of the kubelet; the driver's own directory is in it
    registrar_dir: Path  # in which the kubelet looks for plugins
    handover: HandoverSettings
    has_processes: HasProcesses


class DraDriver:
    """
    Serves the claims of one node; `publish` says which GPUs there are, `start` begins.

    Claims are taken back from `start` on; who asks for something waits for the first `publish`.
    What *division* says at each `publish` is what GPUs are divided into; what claims hold stays as it is.

    Raises:
        DraError: If nobody knows who holds what, because the checkpoint cannot be read.
        SocketError: If the directories of the kubelet are not there.
    """

    def __init__(
        self, settings: DraSettings, cluster: Cluster, division: Division, api: ApiServer, *, boot_id: str
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._division = division
        self._api = api
        own = settings.plugins_dir / DRIVER
        try:
            own.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            raise SocketError(f"{own}: cannot be made: {error.strerror}: is a kubelet here?") from error
        self._calls = Calls()
        self._preparations = Preparations(
            own, settings.handover.cdi_dir, boot_id=boot_id, has_processes=settings.has_processes
        )
        self.by_variable, self.still_used = self._preparations.by_variable, self._preparations.still_used
        self.unwritten = self._preparations.unwritten
        self._grids = Grids(own)
        self.publisher = Publisher(api, node=settings.node, before=self._grids.keep)
        self._watch = SliceWatch(api, node=settings.node, on_event=self.publisher.look)
        self._health = HealthService(pool=settings.node)
        self._server = DraServer(
            DraService(self, pool=settings.node),
            self._health,
            plugins_dir=settings.plugins_dir,
            registrar_dir=settings.registrar_dir,
            on_registered=self.publisher.registered,
        )
        self._lock = Lock()
        self._ending = Event()
        self._devices: dict[str, Device] = {}
        self._published: object = None
        self._why_none = "NVML has not answered yet"  # as long as nothing is published
        self._shared: Sequence[SharedGpu] = ()

    def offers(self) -> tuple[Offer, ...]:
        """Say what is offered of each GPU now; from any thread."""
        known, outlived_by_gpu = self._preparations.kept(also_back=True), self._preparations.outlived_gpus()
        return tuple(
            Offer(
                gpu=one.gpu,
                strategy=one.strategy,
                allocation=DRA,
                resource="",
                device=self._division.device(one.gpu),
                vgpus_per_gpu=self._division.parts(one.gpu, one.strategy),
                claimed=frozenset(name for name, (_, _, gpus) in known.items() if one.gpu.uuid in gpus),
                outlived=outlived_by_gpu.get(one.gpu.uuid),
            )
            for one in self._shared
        )

    def parts_of(self, device: str) -> dict[str, int]:
        """Say how many thousandths of each GPU, by its UUID, a device is; nothing of one that is not known."""
        with self._lock:
            found = self._devices.get(device)
        return {gpu.uuid: found.milli_of_each for gpu in found.gpus} if found else {}

    def held_gpus(self) -> frozenset[str]:
        """Name the GPUs of which claims hold something, by UUID."""
        return self._preparations.gpus()

    def withdraw(self, gpus: Collection[str]) -> frozenset[str]:
        """Prepare no claims any more on those of *gpus*, by UUID, of which claims hold nothing, and name them."""
        return self._preparations.withdraw(gpus)

    def start(self, threads: Threads) -> None:
        """Serve and publish until the threads are ended."""
        threads.start("dra", self._server.run, stop=self._stop_serving)
        threads.start("slices", self.publisher.run, stop=self.publisher.stop, may_hang=True)
        threads.start("slice watch", self._watch.run, stop=self._watch.stop, may_hang=True)

    def publish(self, shared: Sequence[SharedGpu], *, driver_version: str) -> None:
        """Tell scheduler and kubelet which GPUs there are, and how they are."""
        faults = {one.gpu.uuid: one.why for one in shared if one.why}
        self._preparations.follow({one.gpu.uuid: one.why for one in shared})
        kept = self._preparations.kept()
        grids = grids_of(shared, self._division)
        earlier = self._grids.follow(grids)
        gpus = self._preparations.outlived_gpus()
        state = ([(one.gpu, one.why) for one in shared], grids, earlier, kept, gpus, driver_version)
        if state == self._published:
            return
        devices = outlived(devices_of(shared, division=self._division, kept=kept, earlier=earlier), gpus, kept)
        with self._lock:
            self._devices = {device.name: device for device in devices}
            self._shared = shared
        self._health.set_states([DeviceState(name=one.name, why=one.fault(faults)) for one in devices])
        self.publisher.publish(slice_specs(devices, shared, node=self._settings.node, driver_version=driver_version))
        self._published = state

    def publish_none(self, why: str) -> None:
        """Tell the scheduler that there is no GPU yet, before the first `publish`; who asks for one hears *why*."""
        self._why_none = why
        self.publisher.publish(slice_specs((), (), node=self._settings.node, driver_version=""))

    def restore(self) -> None:
        """Write again what containers need and somebody has removed, as far as that can be: see `unwritten`."""
        self._preparations.restore()

    def begin(self, is_awaited: Callable[[], bool]) -> AbstractContextManager[Call]:
        """Begin a call to prepare claims; *is_awaited* says whether the kubelet still waits for the answer."""
        return self._calls.begin(is_awaited)

    def look_again(self) -> None:
        """Let calls that wait see whether they are still awaited."""
        self._preparations.look_again()

    def prepare(self, call: Call, *, uid: str, namespace: str, name: str, wait_seconds: float) -> Prepared:
        """
        Have everything ready that the containers of a claim need, as long as the kubelet wants it.

        Raises:
            PluginError, OSError: If that is not possible; the sentence says why.
        """
        until = monotonic() + wait_seconds
        claim = self._claim(path_of_claim(namespace, name), call, uid=uid, until=until)
        pod, allocated = allocated_devices(claim, uid=uid, node=self._settings.node)
        devices = tuple(self._given(uid, allocated, call, until=until))
        wanted = Prepared(namespace=namespace, name=name, devices=devices, pod=pod.name, pod_uid=pod.uid)
        wait_seconds = max(0.0, until - monotonic())
        prepared = self._preparations.prepare(uid, wanted, wait_seconds=wait_seconds, call=call)
        _log.info("claim prepared", extra={"claim": f"{namespace}/{name}", "uid": uid, "devices": held(prepared)})
        return prepared

    def _given(self, uid: str, allocated: Sequence[Allocated], call: Call, *, until: float) -> Sequence[HeldDevice]:
        """Say what a claim gets: what it was given before, whatever the node's devices are by now."""
        if before := self._preparations.given(uid, [(one.request, one.name) for one in allocated]):
            return before
        self._expect_gpus(call, uid=uid, until=until)
        with self._lock:
            devices = self._devices
        waiting = [devices[one.name] for one in allocated if one.name in devices]
        for gpu in {gpu.uuid for one in waiting if one.is_earlier for gpu in one.gpus}:
            self._grids.renew(gpu)
        return [
            held_device(one, division=self._division, cluster=self._cluster, handover=self._settings.handover)
            for one in wanted_devices(allocated, devices)
        ]

    def unprepare(self, *, uid: str, namespace: str, name: str) -> None:
        """
        Take back what a claim held: its containers have ended, or a pod was deleted by force and they are about to.

        No call that runs prepares it from then on.

        Raises:
            PluginError, OSError: If that is not possible; the sentence says why.
        """
        self._calls.void(uid)
        self._preparations.look_again()
        if (prepared := self._preparations.find(uid)) is None:
            return
        left = self._settings.has_processes(prepared.pod_uid)
        may_run = is_gone(self._api, path_of_claim(namespace, name), uid) if left is None else left
        hold_seconds = HOLD_SECONDS * may_run
        if self._preparations.unprepare(uid, hold_seconds=hold_seconds):
            fields = {"claim": f"{namespace}/{name}", "uid": uid, "hold_seconds": hold_seconds, "has_processes": left}
            _log.info("claim unprepared", extra=fields)

    def _stop_serving(self) -> None:
        self._ending.set()
        self._preparations.close()
        self._server.stop()

    def _expect_gpus(self, call: Call, *, uid: str, until: float) -> None:
        """Wait until that moment for the first GPUs; ClaimError if there are none."""
        while self._published is None:
            call.check(uid)
            if monotonic() > until or not call.may_wait() or self._ending.wait(_LOOK_AGAIN_SECONDS):
                found = f"no GPU of this node has been found yet: {self._why_none}"
                raise ClaimError(f"{found}: see the plugin's log there")

    def _claim(self, path: str, call: Call, *, uid: str, until: float) -> Any:
        """Read a claim; an API server that cannot answer now is asked again until that moment."""
        while True:
            call.check(uid)
            try:
                return self._api.get(path)
            except ApiError as error:
                if error.is_missing:
                    raise ClaimError("the claim is gone: its pod was deleted, or somebody deleted the claim") from error
                self._grids.renew()  # nobody knows of which GPU it is
                is_over = not error.may_pass or monotonic() > until or not call.may_wait()
                if is_over or self._ending.wait(_ASK_AGAIN_SECONDS):
                    raise
