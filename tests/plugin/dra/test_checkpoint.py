"""Which GPUs claims hold, by the file alone."""

from pathlib import Path

import pytest

from plugin.dra.checkpoint import Checkpoint, HeldBack, Prepared, claimed_gpus, write_checkpoint
from tests.plugin.dra.prepared import device, unseen

NOW_SECONDS = 1000.0


def of(gpu: str, *, boot_id: str = "boot") -> Prepared:
    return Prepared(namespace="ns", name="claim", boot_id=boot_id, devices=(device(300, gpu),))


def back(gpu: str, *, in_seconds: float, boot_id: str = "boot") -> HeldBack:
    return HeldBack(until_seconds=NOW_SECONDS + in_seconds, uid="uid", prepared=of(gpu, boot_id=boot_id))


@pytest.mark.parametrize(
    ("checkpoint", "gpus"),
    [
        (Checkpoint(), set()),
        (Checkpoint(claims={"uid": of("GPU-a"), "other": of("GPU-b", boot_id="earlier")}), {"GPU-a", "GPU-b"}),
        (Checkpoint(held_back=(back("GPU-a", in_seconds=5), back("GPU-b", in_seconds=-1))), {"GPU-a"}),
        (Checkpoint(held_back=(back("GPU-a", in_seconds=5, boot_id="earlier"),)), set()),
    ],
)
def test_a_gpu_is_claimed_until_it_is_taken_back_and_what_is_held_back_of_it_is_over(
    tmp_path: Path, checkpoint: Checkpoint, gpus: set[str]
) -> None:
    write_checkpoint(tmp_path, checkpoint)
    assert claimed_gpus(tmp_path, boot_id="boot", has_processes=unseen, clock=lambda: NOW_SECONDS) == gpus
