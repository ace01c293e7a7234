"""Claims that are prepared without a kubelet."""

from collections.abc import Callable
from pathlib import Path

from plugin.dra.calls import Call, Calls
from plugin.dra.checkpoint import HeldDevice, Prepared
from plugin.dra.preparations import Preparations
from plugin.state_files import boot_seconds
from plugin.usage.pod_cgroups import HasProcesses


def device(milli: int, *gpus: str, request: str = "r", of: int = 10) -> HeldDevice:
    return HeldDevice(
        request=request,
        name=f"{'-'.join(gpus)}-{milli}",
        strategy="mps",
        milli=milli,
        of=of,
        gpus=gpus,
        edits={"env": ["A=b"]},
    )


def unseen(_pod_uid: str) -> None:
    """Say of a pod that nobody knows whether processes of it are left."""


def made(
    directory: Path,
    boot_id: str = "boot",
    clock: Callable[[], float] = boot_seconds,
    has_processes: HasProcesses = unseen,
) -> Preparations:
    """Make those of a node with two GPUs, `GPU-0` and `GPU-1`."""
    on = Preparations(directory, directory / "cdi", boot_id=boot_id, has_processes=has_processes, clock=clock)
    on.follow({"GPU-0": "", "GPU-1": ""})
    return on


def prepare(
    on: Preparations, uid: str, *devices: HeldDevice, wait_seconds: float = 0, call: Call | None = None
) -> None:
    """Prepare a claim, in a call of its own unless one is given."""
    with Calls().begin(lambda: True) as own:
        wanted = Prepared(namespace="ns", name=f"claim-{uid}", devices=devices, pod=f"pod-{uid}", pod_uid=uid)
        on.prepare(uid, wanted, wait_seconds=wait_seconds, call=call or own)
