"""Why a claim cannot be prepared now: a rule from what is held of each GPU, and how these are."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor

from plugin.dra.checkpoint import HeldDevice, Prepared
from plugin.errors import ClaimError
from policies.contract import MILLI_PER_GPU
from policies.share import milli_text


def requests_of(devices: Sequence[HeldDevice]) -> list[tuple[str, str]]:
    """Name the request that each device is of, and the device."""
    return [(one.request, one.name) for one in devices]


def obstacle(
    devices: Sequence[HeldDevice],
    gpus: Mapping[str, str],
    others: Collection[tuple[str, Prepared]],
    *,
    is_given: bool,
) -> str | None:
    """
    Say why a claim cannot have *devices* now; None if it can.

    *gpus* has by UUID why no container may start there, empty if it may; *others* is what other claims hold, by UID. A
    claim that *is_given* its devices keeps them on GPUs that are not given away any more.

    Raises:
        ClaimError: If it never can.
    """
    wanted: dict[str, Fraction] = {}
    for one in devices:
        for gpu in one.gpus:
            wanted[gpu] = wanted.get(gpu, Fraction(0)) + one.part
    if (left := wanted.keys() - gpus.keys()) and not is_given:
        raise ClaimError(f"{min(left)} is not allocated by DRA any more: delete the pod, it is scheduled again")
    for gpu, part in wanted.items():
        if why := gpus.get(gpu):
            return f"{gpu} is unhealthy: {why}: see `gpu-share plugin status` on this node"
        holders = _holders(gpu, others)
        free = 1 - sum(holders.values(), Fraction(0))
        if part > free:
            names = ", ".join(sorted(holders))
            free_milli, milli = floor(max(free, Fraction(0)) * MILLI_PER_GPU), ceil(part * MILLI_PER_GPU)
            return (
                f"{gpu} has {milli_text(free_milli)} free and {milli_text(milli)} is needed: containers still "
                f"run of {names}, perhaps of a pod that was deleted by force: wait until they have ended"
            )
    return None


def _holders(gpu: str, held: Iterable[tuple[str, Prepared]]) -> dict[str, Fraction]:
    """Say who holds something of a GPU, and which part of it."""
    holders = {}
    for uid, prepared in held:
        if parts := [one.part for one in prepared.devices if gpu in one.gpus]:
            holders[f"{prepared.namespace}/{prepared.name} ({uid})"] = sum(parts, Fraction(0))
    return holders
