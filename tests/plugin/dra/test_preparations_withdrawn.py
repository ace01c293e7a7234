"""Which GPUs claims are given something of, and what becomes of a claim whose GPU goes to another allocator."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plugin.errors import ClaimError
from tests.plugin.dra.prepared import device, made, prepare

NO_MORE = "GPU-0 is not allocated by DRA any more: delete the pod"


@pytest.mark.parametrize("gpus", [("GPU-0",), ("GPU-0", "GPU-1")])
def test_a_claim_that_waits_for_a_gpu_is_told_at_once_that_it_has_gone(tmp_path: Path, gpus: tuple[str, ...]) -> None:
    on = made(tmp_path)
    on.follow({"GPU-0": "MPS daemon starting", "GPU-1": ""})
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(prepare, on, "new", device(1000 * len(gpus), *gpus), wait_seconds=30)
        assert on.withdraw(["GPU-0"]) == {"GPU-0"}
        on.follow({"GPU-1": ""})
        with pytest.raises(ClaimError, match=NO_MORE):
            waiting.result(timeout=10)
    prepare(on, "other", device(1000, "GPU-1"))


def test_a_gpu_of_which_something_is_held_or_held_back_stays(tmp_path: Path) -> None:
    now = [0.0]
    on = made(tmp_path, clock=lambda: now[0])
    prepare(on, "old", device(2000, "GPU-0", "GPU-1"))
    assert on.withdraw(["GPU-0"]) == frozenset()
    on.unprepare("old", hold_seconds=10)
    assert on.withdraw(["GPU-0"]) == frozenset()
    now[0] = 10
    prepare(on, "new", device(100, "GPU-1"))
    assert on.withdraw(["GPU-0", "GPU-1"]) == {"GPU-0"}
    prepare(on, "next", device(900, "GPU-1"))
    with pytest.raises(ClaimError, match=NO_MORE):
        prepare(on, "none", device(100, "GPU-0"))


def test_what_a_claim_was_given_it_keeps_wherever_its_gpu_is(tmp_path: Path) -> None:
    prepare(made(tmp_path), "old", device(900, "GPU-0"))
    after = made(tmp_path)
    after.follow({})
    prepare(after, "old", device(900, "GPU-0"))
    with pytest.raises(ClaimError, match=NO_MORE):
        prepare(after, "old", device(100, "GPU-0"))
    with pytest.raises(ClaimError, match=NO_MORE):
        prepare(after, "new", device(100, "GPU-0"))
