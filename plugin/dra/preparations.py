"""
The claims that are prepared: no GPU is given away twice, though Kubernetes believes it to be free already.

A pod that is deleted by force frees its claim at once, while its container still runs. So what each container was
given is added up here until the kubelet says that it has ended, and who comes too early waits within the call.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from threading import Condition, Lock

from msgspec.structs import replace

from plugin.dra.calls import Call
from plugin.dra.checkpoint import Checkpoint, HeldBack, HeldDevice, Kept, Prepared, gpus_of, kept_of
from plugin.dra.claim_files import ClaimFiles
from plugin.dra.lasting import LOOK_AGAIN_SECONDS, Lasting
from plugin.dra.obstacles import obstacle, requests_of
from plugin.dra.outliving import OutlivedGpus, outlived_gpus
from plugin.errors import ClaimError
from plugin.state_files import boot_seconds
from plugin.usage.pod_cgroups import HasProcesses


class Preparations:
    """
    Prepares and unprepares claims, for any thread.

    What is in memory has one lock, which nobody holds for long: whoever publishes GPUs takes it too. Files are written
    under another, by one call at a time, since a disk may take as long as it likes.

    Raises:
        DraError: If the checkpoint in *directory* cannot be read.
    """

    def __init__(
        self,
        directory: Path,
        cdi_dir: Path,
        *,
        boot_id: str,
        has_processes: HasProcesses,
        clock: Callable[[], float] = boot_seconds,
    ) -> None:
        self._files = ClaimFiles(directory, cdi_dir)
        self._has_processes = has_processes
        self._boot_id = boot_id
        self._clock = clock
        self._lasting = Lasting(has_processes, clock)
        self._writing = Lock()  # taken before the next one
        self._changed = Condition()
        self._gpus: Mapping[str, str] = {}  # see `follow`
        self._closed = False
        checkpoint = self._files.read()
        self._claims = checkpoint.claims
        self._held_back = tuple(one for one in checkpoint.held_back if one.is_believed(clock()))
        # A container that starts again asks for its CDI device and never for its claim.
        self._unsettled = self._files.write_only(self._of_this_boot())  # whose specifications are not as they will be

    def restore(self) -> None:
        """
        Write specifications again that somebody has removed: the kubelet does not ask for a prepared claim again.

        What could not be written is tried again too: perhaps nobody asks for it any more.
        """
        if not self._writing.acquire(blocking=False):
            return  # the next time: a disk that takes long is not to keep the caller
        try:
            if self._files.unwritten:
                checkpoint = Checkpoint(claims=self._claims, held_back=self._held_back)
                unspecified = self._files.try_again(checkpoint, self._of_this_boot())
                with self._changed:
                    self._unsettled = unspecified
            with self._changed:
                settled = {uid: one for uid, one in self._of_this_boot().items() if uid not in self._unsettled}
            for uid, prepared in settled.items():
                self._files.restore(uid, prepared)
        finally:
            self._writing.release()

    def unwritten(self) -> str:
        """Say why it cannot be written what claims hold; empty if it can."""
        return self._files.unwritten

    def kept(self, *, also_back: bool = False) -> Kept:
        """Return size, part of each GPU, and GPUs of each device that is held, or held *back*, by its name."""
        with self._changed:
            return kept_of((*(one.prepared for one in self._still_held_back() if also_back), *self._claims.values()))

    def gpus(self) -> frozenset[str]:
        """Name the GPUs, by UUID, of which something is held, or held back."""
        with self._changed:
            return gpus_of((*self._claims.values(), *(one.prepared for one in self._still_held_back())))

    def outlived_gpus(self) -> OutlivedGpus:
        """Find the GPUs of which processes use something that have outlived their pod for some seconds."""
        with self._changed:
            return outlived_gpus(self._claims, self._still_held_back(), self._clock(), self._lasting.left.get)

    def by_variable(self) -> bool:
        """Whether NVIDIA_VISIBLE_DEVICES brings the containers of some claim their GPU: no device of NVIDIA's does."""
        with self._changed:
            return any(not one.others for prepared in self._claims.values() for one in prepared.devices)

    def follow(self, gpus: Mapping[str, str]) -> None:
        """Give away *gpus* and no others: they have by UUID why no container may start there now, empty if it may."""
        with self._changed:
            if gpus != self._gpus:
                self._gpus = dict(gpus)
                self._changed.notify_all()

    def withdraw(self, gpus: Collection[str]) -> frozenset[str]:
        """Give away nothing more of those of *gpus* of which nothing is held, or held back, and name them."""
        with self._changed:
            left = frozenset(gpus) - self.gpus()
            self.follow({uuid: why for uuid, why in self._gpus.items() if uuid not in left})
        return left

    def look_again(self) -> None:
        """Let who waits see whether anybody still wants what it waits for."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._closed = True
        self.look_again()

    def prepare(self, uid: str, wanted: Prepared, *, wait_seconds: float, call: Call) -> Prepared:
        """
        Give a claim the devices that are *wanted* for it, as soon as they are free and their GPUs healthy.

        A claim that is prepared already keeps what its containers were given, as long as the machine runs.

        Raises:
            ClaimError: If that takes longer than *wait_seconds*, or too many calls wait: the sentence says what is in
                the way. At once if others give a GPU away now. Or if the kubelet has given *call* up; nothing of it is
                left then.
            HandoverError: If the CDI specification cannot be written.
            HoldingsError: If the checkpoint cannot be written.
        """
        wanted = replace(wanted, boot_id=self._boot_id)
        deadline_seconds = self._clock() + wait_seconds
        while True:
            self._wait_for_room(uid, wanted.devices, deadline_seconds, call)
            with self._writing:
                before = self._claims
                if prepared := self._reserved(uid, wanted, call):
                    self._keep(uid, prepared, before)
                    return prepared

    def _reserved(self, uid: str, wanted: Prepared, call: Call) -> Prepared | None:
        """Let nobody else have its devices from now on; None if somebody was faster."""
        with self._changed:
            if self._obstacle(uid, wanted.devices) is not None:
                return None
            call.check(uid)  # who unprepares it from here on finds it, and waits for the lock of writing
            prepared = replace(wanted, devices=self.given(uid, requests_of(wanted.devices)) or wanted.devices)
            self._claims = {**self._claims, uid: prepared}
            self._unsettled.add(uid)
        return prepared

    def _keep(self, uid: str, prepared: Prepared, before: dict[str, Prepared]) -> None:
        if before.get(uid) != prepared:
            try:
                self._files.keep(Checkpoint(claims=self._claims, held_back=self._still_held_back()))
            except BaseException:
                self._settle(uid, before, self._held_back)
                raise
        self._files.specify(uid, prepared)  # where that fails, the kubelet asks again
        self._settle(uid, self._claims, self._still_held_back())

    def _wait_for_room(self, uid: str, devices: Sequence[HeldDevice], deadline_seconds: float, call: Call) -> None:
        with self._changed:
            while (obstacle := self._obstacle(uid, devices)) is not None:
                call.check(uid)
                left_seconds = deadline_seconds - self._clock()
                if left_seconds <= 0 or self._closed or not call.may_wait():
                    raise ClaimError(obstacle)
                self._changed.wait(min(left_seconds, LOOK_AGAIN_SECONDS) if self._held_back else left_seconds)

    def given(self, uid: str, requests: Sequence[tuple[str, str]]) -> tuple[HeldDevice, ...]:
        """
        Return what the containers of a claim were given, which may run; nothing if they were not.

        *requests* has for each request of the claim its name and that of its device: they have to be the same.
        """
        with self._changed:
            before = self._of_this_boot().get(uid)
        return () if before is None or requests_of(before.devices) != [*requests] else before.devices

    def find(self, uid: str) -> Prepared | None:
        """Return what a claim was given; None if that is nothing."""
        with self._changed:
            return self._claims.get(uid)

    def still_used(self, but: Collection[tuple[str, str]]) -> tuple[Prepared, ...]:
        """List what claims have, or had, of whose pods processes are left, *but* of those by namespace and name."""
        with self._changed:
            given = (*self._claims.values(), *(one.prepared for one in self._held_back))
        return tuple(one for one in given if (one.namespace, one.pod) not in but and self._has_processes(one.pod_uid))

    def unprepare(self, uid: str, *, hold_seconds: float = 0.0) -> bool:
        """
        Take back what a claim was given; False if that is nothing.

        With *hold_seconds* others get it after these; or once no process of its pod is left, where that is seen.

        Raises:
            HandoverError: If the CDI specification cannot be removed.
            HoldingsError: If the checkpoint cannot be written.
        """
        with self._writing:
            with self._changed:
                if uid not in self._claims:
                    return False
                self._unsettled.add(uid)
            held_back = tuple(one for one in self._still_held_back() if one.uid != uid)
            try:
                self._files.remove(uid)
                if hold_seconds:
                    held_back += (HeldBack.of(uid, self._claims[uid], self._clock(), seconds=hold_seconds),)
                claims = {other: one for other, one in self._claims.items() if other != uid}
                self._files.keep(Checkpoint(claims=claims, held_back=held_back))
            except BaseException:
                self._settle(uid, self._claims, self._held_back)
                raise
            self._settle(uid, claims, held_back)
        return True

    def _settle(self, uid: str, claims: dict[str, Prepared], held_back: tuple[HeldBack, ...]) -> None:
        """Let everybody see what has become of a claim."""
        with self._changed:
            self._claims, self._held_back = claims, held_back
            self._unsettled.discard(uid)
            self._changed.notify_all()

    def _still_held_back(self) -> tuple[HeldBack, ...]:
        self._held_back = self._lasting.of(self._held_back)  # of what has ended nobody asks again
        return self._held_back

    def _of_this_boot(self) -> dict[str, Prepared]:
        """Return the claims whose containers may run, by UID: what others were given can be another GPU's now."""
        return {uid: prepared for uid, prepared in self._claims.items() if prepared.boot_id == self._boot_id}

    def _obstacle(self, uid: str, devices: Sequence[HeldDevice]) -> str | None:
        """Say why a claim cannot have *devices* now; ClaimError if it never can."""
        held = (*self._claims.items(), *((one.uid, one.prepared) for one in self._still_held_back()))
        others = [(other, one) for other, one in held if other != uid and one.boot_id == self._boot_id]
        return obstacle(devices, self._gpus, others, is_given=bool(self.given(uid, requests_of(devices))))
