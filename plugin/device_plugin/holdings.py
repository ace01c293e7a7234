"""
Which vGPUs are held now, and by which container: what the kubelet says, and our own answers to Allocate.

Each knows what the other does not. An answer is known at once, and the kubelet's word is up to a second old. The
kubelet alone knows that a container has ended, and it leaves init containers out: their vGPUs are held although it
never names them. So what was allocated is held until the kubelet has named it and names it no more, has it for somebody
else, or has it no longer in its own checkpoint. A kubelet that has started names its pods one after the other: what it
is yet to name is held for as long as its checkpoint has it.

What a vGPU is, one of how many, and of which GPU, is our word alone: it is kept in a file for the plugin that comes
after this one, and by the kubelet in our answers. Where the kubelet names a vGPU that is in neither, nobody knows on
which GPU that is.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic

from plugin.device_plugin.checkpoint import Checkpoint
from plugin.device_plugin.holder import Holder, by_gpu, kept_of
from plugin.device_plugin.kubelet_record import KubeletRecord
from plugin.device_plugin.listing import Listing
from plugin.device_plugin.outliving import SOMEBODY, Endings, Left, marked, still_used, without_ended
from plugin.device_plugin.restarts import admitted, of_earlier_kubelet
from plugin.device_plugin.takeover import pod_of, taken_over
from plugin.errors import TenantsError
from plugin.pod_resources.settling import Settling
from plugin.pod_resources.tenants import Tenant
from plugin.usage.pod_cgroups import HasProcesses

_WRITE_SECONDS = 5.0  # between two writes, when nothing changes


class Holdings:
    """
    What is held, by device ID; for any thread.

    *read* asks the kubelet and raises TenantsError where it does not say; *kubelet* is the socket that it answers on,
    by which another kubelet is known: one that has just started does not name all pods yet.
    """

    def __init__(
        self,
        read: Callable[[], tuple[Tenant, ...]],
        *,
        kubelet: Path,
        checkpoint: Checkpoint | None = None,
        has_processes: HasProcesses = lambda _pod_uid: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Begin with what is in *checkpoint*, and keep it there."""
        self._read = read
        self.record = KubeletRecord(kubelet.parent)
        self._left = partial(Left, self.record.has_others, has_processes)
        self._clock = clock
        self._checkpoint = checkpoint or Checkpoint()
        self._lock = Lock()
        began_seconds = clock()
        self._held = {
            str(vgpu): Holder.of_earlier(one, vgpu, since_seconds=began_seconds)
            for vgpu, one in self._checkpoint.held.items()
        }
        self._known = False
        self._settling = Settling(kubelet, is_continued=bool(self._held) or self._checkpoint.is_unreadable)
        self._unwritten = ""
        self._written_seconds = began_seconds
        self._offered: dict[str, str] = {}  # by ID: resource that nobody held it as, since the kubelet was asked

    @property
    def known(self) -> bool:
        """Whether the kubelet has ever said who holds what."""
        return self._known

    @property
    def allocations(self) -> int:
        """The number of the last answer, by which the kubelet's checkpoint tells it from others."""
        return self._checkpoint.allocations

    @property
    def is_blind(self) -> bool:
        """Whether more may be held than anybody knows: the file is lost, and the kubelet has not named all pods yet."""
        return self._checkpoint.is_unreadable and not self.is_settled

    @property
    def is_settled(self) -> bool:
        """Whether the kubelet has had time to name all that it has."""
        return self._settling.is_settled(self._clock())

    @property
    def unwritten(self) -> str:
        """Why what is held cannot be written, a second after it could not for the first time; empty if it can."""
        return self._unwritten

    def held(self) -> Mapping[str, Holder]:
        """Say who holds what, as far as it is known at this moment."""
        with self._lock:
            return dict(self._held)

    def by_gpu(self) -> dict[str, dict[str, Holder]]:
        """Say the same by UUID of the GPU, each with its number; of one that nobody knows, by the one in its ID."""
        return by_gpu(self.held(), unknown_of=self._checkpoint.unknown_of)

    def divide_by(self, vgpus_per_gpu: int) -> str:
        """Have it written what is held, before GPUs are divided by another number; why it cannot be, or nothing."""
        with self._lock:
            before, self._checkpoint.vgpus_per_gpu = self._checkpoint.vgpus_per_gpu, vgpus_per_gpu
            self._write()
            if why := self._checkpoint.unwritten:
                self._checkpoint.vgpus_per_gpu = before
            return why

    def ask(self) -> Listing:
        """
        Ask the kubelet which containers there are, and which vGPUs they have.

        Raises:
            TenantsError: If it does not say.
        """
        return Listing.of(asked_seconds=self._clock(), tenants=self._read())  # in this order

    def refresh(self, is_listed: Callable[[str, str], bool] = lambda _id, _resource: True) -> None:
        """
        Ask the kubelet; *is_listed* says whether it is told of a vGPU, by its ID, as one of a resource.

        Raises:
            TenantsError: If it does not say; what was known stays.
        """
        self.notice_kubelet()
        with self._lock:
            self._write_again()
            kubelet, self._offered = self._settling.kubelet, {}
        listing = self.ask()
        asked_seconds = listing.asked_seconds
        self.record.look(asked_seconds)
        answers = self.record.answers() if listing.is_unknown(self.held()) else {}
        with self._lock:
            if self._settling.another() or self._settling.kubelet != kubelet:
                raise TenantsError("another kubelet has started while one was asked")
            before = self._held
            listing = listing.without(self._offered, before)
            self._checkpoint.allocations = max(self.allocations, self.record.latest)
            self._settling.listed(listing.names, asked_seconds, is_growing=partial(listing.is_growing, before))
            is_first, self._known = not self._known, True
            is_whole, may_have = self._settling.is_settled(asked_seconds), self.record.has
            has_lost = partial(listing.has_lost, is_whole=is_whole, may_have=may_have)
            has_ended = Endings(has_lost, self._left())
            held = listing.held(self.record.noted(self._held), has_ended=has_ended, answers=answers)
            self._held = marked(held, has_ended.outliving)
            if is_whole:
                self._checkpoint.is_unreadable = False  # what was lost is known again
                self._held = admitted(self._held, is_listed=is_listed, has=self.record.has)
            if self._held != before or self._checkpoint.is_to_be_written or is_first:
                self._write()

    def notice_kubelet(self) -> None:
        """Take up that another kubelet runs, if one does: it has yet to name what is held, and may not know it."""
        if (kubelet := self._settling.another()) is None:
            return
        self.record.look(self._clock())
        with self._lock:
            is_same = self._checkpoint.kubelet == str(kubelet)  # as the last plugin knew
            is_first = self._settling.kubelet is None
            self._checkpoint.kubelet = str(kubelet)
            may_know_less = bool(self._held) or self._checkpoint.is_unreadable
            self._settling.begin(kubelet, is_new=may_know_less and not is_same)
            if self._held and not is_same:
                self._held = of_earlier_kubelet(self.record.noted(self._held), self.record, is_first=is_first)
                self._write()

    def allocated(
        self,
        gpu_of: Mapping[str, str],
        *,
        resource: str = "",
        of: int = 0,
        by_cdi: bool = False,
        left: Mapping[str, Holder] | None = None,
    ) -> str:
        """
        Note that a container gets vGPUs on GPUs, by ID and UUID, each one of *of* of its GPU, and a CDI device or none.

        It is a new container, whoever had them before; *left* is what init containers of its pod had. Say why that
        cannot be kept, or nothing.
        """
        with self._lock:
            self._checkpoint.allocations = number = self.allocations + 1
            holder = Holder(
                container=None,
                since_seconds=self._clock(),
                resource=resource,
                of=of,
                pod=pod_of(gpu_of, self._held, number=number),
                call=number,
                by_cdi=by_cdi,
            )
            before = self._held
            self._held = before | {
                text: replace(holder if text in gpu_of else before[text], gpu=gpu, also=tuple(also))
                for text, (gpu, *also) in taken_over(left or {}, gpu_of).items()
            }
            self._write()
            if self._checkpoint.unwritten:
                self._held = before
            return self._checkpoint.unwritten

    def recheck(self) -> None:
        """Take up what the kubelet need not be asked for: its checkpoint, and the end of what processes alone held."""
        self.record.look(self._clock())
        with self._lock:
            before = self._held
            self._held = without_ended(self.record.noted(before), self._left())
            if self._held != before:
                self._write()

    def outliving(self, ids: Collection[str]) -> dict[str, str]:
        """Say which of *ids* are held by processes alone that are left, and of which container."""
        self.record.look(self._clock())  # they may have been allocated since the last look
        with self._lock:
            held = self.record.noted(self._held)
            left = still_used(held, ids, self._left())
            self._held = {**held, **left}
        return {text: one.known_name or SOMEBODY for text, one in left.items()}

    def free(self, ids: Collection[str], *, resource: str = "") -> bool:
        """Note that the kubelet has *ids* for a new container: nobody holds them. Say whether that is news."""
        with self._lock:
            self._offered.update(dict.fromkeys(ids, resource))
            known = [text for text in {*ids} if (one := self._held.get(text)) and one.resource in ("", resource)]
            for text in known:
                del self._held[text]
        return bool(known)

    def is_record_due(self) -> bool:
        """Whether the kubelet should write its checkpoint: that alone says of some vGPUs whether they are held."""
        return self.record.is_due(self.held(), self._clock(), is_settled=self.is_settled)

    def _write_again(self) -> None:
        """Write what could not be written, and now and then what could: whether it still can, shows before a pod."""
        before = self._checkpoint.unwritten
        if before or self._clock() - self._written_seconds >= _WRITE_SECONDS:
            self._write()
        self._unwritten = self._checkpoint.unwritten if before else ""

    def _write(self) -> None:
        self._written_seconds = self._clock()
        held, unknown_of = self._held, self._checkpoint.unknown_of
        self._checkpoint.write(kept_of(held, unknown_of=unknown_of), is_complete=not self.is_blind)
