"""All MPS daemons of this node: which GPUs have one, what their clients may take, and what is published about them."""

import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread

from plugin.errors import MpsError, ThreadsError
from plugin.gpus.gpu import Gpu
from plugin.lifecycle import started
from plugin.mps import shared_memory
from plugin.mps.client_limits import next_ceiling
from plugin.mps.daemon import Daemon
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.in_use import GpusInUse
from plugin.mps.largest_held import largest_held
from plugin.mps.mount_sources import warn_without, withdraw_all
from plugin.mps.no_links import follow_no_links
from plugin.mps.pipe_directories import open_to_all, prepare_pipe_directory
from plugin.mps.processes import holders
from plugin.mps.state import MpsState, write_state
from plugin.shares.parts_file import CheckpointError
from plugin.state_files import boot_seconds
from policies.ceiling import largest_vgpus
from policies.cluster import Cluster
from policies.contract import MPS
from policies.policy_set import PolicySet
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_NOT_KEPT = "a directory that tenants share cannot be kept"


class Supervisor:
    """Holds a supervisor for each GPU that is shared by MPS."""

    def __init__(self, context: SupervisorContext) -> None:
        self._context = context
        self._in_use = GpusInUse(context.tenancy, context.parts)
        self._supervisors: dict[str, DaemonSupervisor] = {}
        self._threads: list[Thread] = []
        self._lock = Lock()  # of the two above
        self._ending = Event()
        self._prepared = False
        self._published: tuple[MpsState | None, float] = (None, 0.0)
        self._unpublished = ""  # why
        self._warn = WarnOnce(_log)
        self._not_restored: Mapping[str, str] = {}  # the GPUs whose compute mode was not: why, as the log has it

    def adopt(self, gpus: Iterable[Gpu]) -> None:
        """
        Give each GPU a supervisor that has none yet, and tell the others how theirs is now.

        Raises:
            MpsError: If the node has no place for daemons.
            ThreadsError: If it has no more threads.
        """
        with self._lock:
            found = tuple(gpus)
            for gpu in found:
                if supervisor := self._supervisors.get(gpu.uuid):
                    supervisor.gpu = gpu
            new = [gpu for gpu in found if gpu.uuid not in self._supervisors]
            if self._ending.is_set() or not new:
                return
            self._prepare()
            for gpu in new:
                supervisor = DaemonSupervisor(gpu, self._context)
                acts = (self._context.timing.silence, supervisor.hang_up, supervisor.hang_up, self._ending)
                # One that hangs in the driver must not keep the process from ending.
                started(Thread(target=every, args=acts, name=gpu.uuid, daemon=True))
                run = Thread(target=supervisor.run, args=[self._ending], name=gpu.uuid, daemon=True)
                self._threads.append(started(run))
                self._supervisors[gpu.uuid] = supervisor  # where there was no thread for it: not yet

    def clean_up(self, *, keep: Iterable[str]) -> None:
        """End what an earlier run left on GPUs other than *keep*, and put back their compute modes."""
        kept = frozenset(keep)
        self._clean_up(kept | self._in_use.of(self._context.modes.changed() - kept))

    def clean_up_left(self) -> None:
        """Do the same for GPUs that are shared by MPS no more, as soon as nobody holds a share of them."""
        ours = frozenset(one.gpu.uuid for one in self._now())
        left = self._context.modes.changed() - ours
        if left - (used := self._in_use.of(left, told=True)):
            self._clean_up(ours | used)

    def _clean_up(self, kept: frozenset[str]) -> None:
        directories = {Path(one.directory) for one in holders()}
        for directory in directories:
            if directory.parent == self._context.place.pipe_directory and directory.name not in (*kept, ".."):
                _log.info("ending an MPS daemon of an earlier run", extra={"directory": str(directory)})
                try:
                    Daemon(directory.name, self._context.place, self._context.timing).stop()
                except MpsError as error:
                    _log.warning("an MPS daemon of an earlier run cannot be ended", extra={"reason": str(error)})
        self._log_left(lambda: self._context.modes.release(keep=kept))

    def hold_modes(self) -> None:
        """Set and check the compute modes of all GPUs; what fails takes the GPU's state with it."""
        supervisors = self._now()
        faults = self._context.modes.hold([supervisor.gpu.uuid for supervisor in supervisors])
        for supervisor in supervisors:
            supervisor.blocked = faults.get(supervisor.gpu.uuid, "")

    def keep_shared_directories(self) -> None:
        """Have what all tenants share open to all of them, and nothing left there once nobody holds a share."""
        if not self._prepared:
            return
        place = self._context.place
        pipes = place.pipe_directory
        try:
            if not shared_memory.is_offered(place):
                shared_memory.provide(place)
            open_to_all(pipes)
            shared_memory.open_to_all(place)
            shared_memory.empty(place, is_idle=self._in_use.is_idle, servers=partial(_below, pipes))
        except OSError as error:
            self._warn(_NOT_KEPT, f"{error.filename or pipes}: {error.strerror}")
        except MpsError as error:
            self._warn(_NOT_KEPT, str(error))

    def set_ceilings(self, policies: PolicySet) -> None:
        """Say what clients may take, by *policies* and by what tenants hold now."""
        held = self._held(policies.cluster)
        for supervisor in self._now():
            device = self._context.device_of(policies.cluster, supervisor.gpu)
            per_gpu = policies.cluster.parts(MPS, device)
            supervisor.ceiling = next_ceiling(
                supervisor.ceiling,
                allowed=Fraction(largest_vgpus(policies, MPS, device), per_gpu),
                held=held.get(supervisor.gpu.uuid, Fraction(0)) if held is not None else None,
                least=Fraction(1, per_gpu),
            )

    def _held(self, cluster: Cluster) -> dict[str, Fraction] | None:
        """Say how much of each GPU its largest container holds, by UUID; None where that is not known."""
        tenants = self._context.tenancy.read()
        try:
            checkpoint = self._context.parts.read()
        except CheckpointError:
            return None
        if tenants is None:
            return None
        gpus = [one.gpu for one in self._now()]
        return largest_held(gpus, tenants, checkpoint, cluster, partial(self._context.device_of, cluster))

    def publish(self) -> None:
        """Write how the daemons are, if that changed or was written too long ago."""
        state = MpsState(
            boot_id=self._context.boot_id,
            gpus={supervisor.gpu.uuid: supervisor.report for supervisor in self._now()},
            pipe_directory=str(self._context.place.pipe_directory),
            mount_sources=str(self._context.place.mount_sources or ""),
        )
        published, at_seconds = self._published
        if state == published and boot_seconds() - at_seconds < self._context.timing.heartbeat:
            return
        try:
            write_state(self._context.state_dir, state)
        except OSError as error:
            if str(error) != self._unpublished:
                _log.warning("state not published", extra={"reason": str(error)})
            self._unpublished = str(error)
        else:
            self._unpublished = ""
            self._published = (state, boot_seconds())

    def awaited(self) -> str:
        """Say on which GPUs contexts would end now: a container has a share, or may, and a daemon; empty if on none."""
        running = frozenset(one.gpu.uuid for one in self._now() if one.runs)
        held = self._in_use.held(running) if running else running
        return f"held, and served by a daemon: {', '.join(sorted(held))}" if held else ""

    def end(self) -> None:
        """Stop all daemons at once, put everything back, and publish that."""
        with self._lock:
            self._ending.set()
        deadline_seconds = boot_seconds() + self._context.timing.end
        while (alive := [one for one in self._threads if one.is_alive()]) and boot_seconds() < deadline_seconds:
            alive[0].join(self._context.timing.publish)
            self.publish()
        for thread in alive:
            _log.warning("an MPS daemon did not end in time", extra={"gpu": thread.name})
        uuids = self._context.modes.changed() | {supervisor.gpu.uuid for supervisor in self._now()}
        kept = self._in_use.of(uuids)
        restore = partial(self._log_left, lambda: self._context.modes.end(keep=kept))
        releasing = Thread(target=restore, name="compute modes", daemon=True)
        try:
            started(releasing).join(self._context.timing.answer)
        except ThreadsError:
            restore()  # here, at the risk that NVML hangs
        if releasing.is_alive():
            _log.warning("compute modes not restored: NVML does not answer; the next start tries again")
        if self._prepared and not kept:
            shared_memory.withdraw(self._context.place)
            withdraw_all(self._context.place.mount_sources)
        self.publish()

    def _now(self) -> list[DaemonSupervisor]:
        with self._lock:
            return list(self._supervisors.values())

    def _prepare(self) -> None:
        if self._prepared:
            return
        place = self._context.place
        if shutil.which(place.program) is None:
            raise MpsError(
                f"--control {place.program}: not found: install the NVIDIA driver, or run the container with the "
                "nvidia runtime and NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            )
        prepare_pipe_directory(place.pipe_directory)
        follow_no_links(place.pipe_directory)
        if place.mount_sources is None:
            warn_without(self._context.state_dir)
        shared_memory.provide(place)
        self._prepared = True

    def _log_left(self, release: Callable[[], Mapping[str, str]]) -> None:
        left = release()
        for uuid, reason in left.items():
            if self._not_restored.get(uuid) != reason:  # it is tried again and again
                _log.warning("compute mode not restored", extra={"gpu": uuid, "reason": reason})
        self._not_restored = left


def _below(pipe_directory: Path) -> tuple[int, ...]:
    """Name the processes of MPS in all pipe directories below, by PID."""
    return tuple(one.pid for one in holders() if Path(one.directory).parent == pipe_directory)


def every(seconds: float, first: Callable[[], None], then: Callable[[], None], ending: Event) -> None:
    """Act at once, and again and again until *ending*; what goes wrong is logged."""
    act = first
    while not ending.is_set():
        try:
            act()
        except Exception:  # noqa: BLE001 - the next time may be better, and daemons do not depend on it
            _log.exception("a periodic check failed")
        act = then
        ending.wait(seconds)
