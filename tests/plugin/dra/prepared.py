"""Claims that are prepared without a kubelet."""

from pathlib import Path

from plugin.dra.calls import Call, Calls
from plugin.dra.checkpoint import HeldDevice
from plugin.dra.preparations import Preparations


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


def made(directory: Path, boot_id: str = "boot") -> Preparations:
    return Preparations(directory, directory / "cdi", boot_id=boot_id)


def prepare(
    on: Preparations, uid: str, *devices: HeldDevice, wait_seconds: float = 0, call: Call | None = None
) -> None:
    """Prepare a claim, in a call of its own unless one is given."""
    with Calls().begin(lambda: True) as own:
        on.prepare(
            uid, namespace="ns", name=f"claim-{uid}", devices=devices, wait_seconds=wait_seconds, call=call or own
        )
