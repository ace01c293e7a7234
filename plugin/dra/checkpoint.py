"""
Which claims are prepared on this node, in a file that outlives the plugin and the machine.

The kubelet never asks again what a container got, and unprepares a claim by its UID alone. So whatever a container
was given stands here, word for word.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from plugin.errors import DraError
from plugin.shares.parts import part_of_size
from plugin.state_files import boot_seconds, write_atomically
from plugin.usage.pod_cgroups import HasProcesses
from policies.contract import MILLI_PER_GPU, SharingStrategy
from policies.sizes import Size
from program.files import read_file

FILE = "checkpoint.json"
# Once a minute the kubelet unprepares the claims of pods that were deleted by force, whether their containers have
# ended or not (kubernetes/kubernetes, pkg/kubelet/cm/dra/manager.go, reconcileLoop). It kills them after 2 s, unless
# they had been told to end before. This is for where it cannot be seen whether their processes are left.
HOLD_SECONDS = 10.0
_MOST_HOLD_SECONDS = 60.0  # that are believed, whatever a file says
_LARGEST_BYTES = 64 << 20  # 2 KB for each claim


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of a claim."""

    request: str
    name: str
    strategy: SharingStrategy
    milli: Annotated[int, Meta(ge=1, le=1 << 53)]  # its size, rounded down; above 1000 several whole GPUs
    # Parts that its GPU was divided into; an earlier plugin did not write it.
    of: Annotated[int, Meta(ge=1, le=MILLI_PER_GPU)] = MILLI_PER_GPU
    gpus: tuple[str, ...]  # UUIDs
    device: str = ""  # that its size is of; empty for GPUs without a name of their own
    edits: dict[str, Any]  # of CDI, as the container got them
    others: tuple[str, ...] = ()  # CDI devices of NVIDIA's that it got before ours

    @property
    def part(self) -> Fraction:
        """What it takes of each of its GPUs: a third is 333 thousandths by its size, and more in truth."""
        return part_of_size(min(self.milli, MILLI_PER_GPU), self.of)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """One claim."""

    namespace: str
    name: str
    boot_id: str = ""  # of the machine, when it was prepared last: containers of an earlier one have ended
    devices: tuple[HeldDevice, ...]
    pod: str = ""  # that the claim was made for, and its UID; an earlier plugin did not write them
    pod_uid: str = ""


Kept = dict[str, tuple[Size, Fraction, tuple[str, ...]]]  # size, part of each GPU, and GPUs of devices, by their names


class HeldBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim was given and has no longer, and nobody else gets yet."""

    since_seconds: float = 0.0  # `state_files.boot_seconds`; an earlier plugin did not write it
    until_seconds: float  # likewise; counts where it cannot be seen whether processes are left
    uid: str
    prepared: Prepared

    @classmethod
    def of(cls, uid: str, prepared: Prepared, now_seconds: float, *, seconds: float) -> Self:
        """Hold back from now on, for so long or for as long as processes of its pod are seen."""
        return cls(since_seconds=now_seconds, until_seconds=now_seconds + seconds, uid=uid, prepared=prepared)

    def is_believed(self, now_seconds: float) -> bool:
        """Whether it is what a plugin wrote since the machine started."""
        return self.until_seconds <= now_seconds + _MOST_HOLD_SECONDS

    def lasts(self, now_seconds: float, has_processes: HasProcesses) -> bool:
        """Whether processes of its pod may still use it."""
        left = has_processes(self.prepared.pod_uid)
        return self.until_seconds > now_seconds if left is None else left


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given away."""

    claims: dict[str, Prepared] = {}  # by UID
    held_back: tuple[HeldBack, ...] = ()


def kept_of(claims: Iterable[Prepared]) -> Kept:
    """List the devices of claims."""
    devices = (one for claim in claims for one in claim.devices)
    return {one.name: (Size(one.strategy, one.milli, one.device), one.part, one.gpus) for one in devices}


def read_checkpoint(directory: Path) -> Checkpoint:
    """
    Read what was prepared; nothing where there is no file.

    Raises:
        DraError: If there is one that cannot be read: who holds what is then not known.
    """
    path = directory / FILE
    try:
        return msgspec.json.decode(read_file(path, most_bytes=_LARGEST_BYTES), type=Checkpoint)
    except FileNotFoundError:
        return Checkpoint()
    except (OSError, ValueError, RecursionError) as error:
        raise DraError(
            f"{path}: cannot be read ({error}), so nobody knows which claims hold which GPUs: drain the node of pods "
            "with a share, remove the file, and start the plugin again"
        ) from error


def claimed_gpus(
    directory: Path, *, boot_id: str, has_processes: HasProcesses, clock: Callable[[], float] = boot_seconds
) -> frozenset[str]:
    """
    Name the GPUs, by UUID, of which claims are given something, or it is held back still.

    A driver alone takes back what is given. What is held back ends by itself, at the latest with the machine.

    Raises:
        DraError: If the file cannot be read.
    """
    checkpoint, now_seconds = read_checkpoint(directory), clock()
    held_back = (
        one.prepared
        for one in checkpoint.held_back
        if one.prepared.boot_id == boot_id and one.lasts(now_seconds, has_processes)
    )
    return gpus_of((*checkpoint.claims.values(), *held_back))


def gpus_of(held: Iterable[Prepared]) -> frozenset[str]:
    """Name the GPUs of which any of these is something, by UUID."""
    return frozenset(uuid for prepared in held for device in prepared.devices for uuid in device.gpus)


def held(prepared: Prepared) -> list[dict[str, object]]:
    """Write what a claim holds for a log line."""
    return [
        {"device": one.name, "gpus": one.gpus, "milli": one.milli, "strategy": one.strategy} for one in prepared.devices
    ]


def write_checkpoint(directory: Path, checkpoint: Checkpoint) -> None:
    """
    Replace the file; a plugin that is killed meanwhile, or a machine that crashes, leaves the old one or the new one.

    Raises:
        OSError: If it cannot be written; the old one stays.
    """
    write_atomically(directory / FILE, msgspec.json.encode(checkpoint), to_disk=True)
