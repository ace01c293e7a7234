"""NVML can hang for one GPU: what becomes of the compute modes of the others, and of that one at the end."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from tests.plugin.mps.fake_modes import FakeModes
from tests.plugin.mps.test_compute_mode import DEFAULT, EXCLUSIVE, PROHIBITED, modes
from tests.plugin.waiting import wait_until


def test_an_nvml_that_hangs_for_one_gpu_keeps_no_other_from_its_mode_and_what_it_still_sets_is_put_back(
    root: Path,
) -> None:
    asked, goes_on = Event(), Event()

    class Hanging(FakeModes):
        def nvmlDeviceGetComputeMode(self, handle: str, /) -> int:  # noqa: N802
            if handle == "GPU-a" and not asked.is_set():
                asked.set()
                assert goes_on.wait(60)
            return super().nvmlDeviceGetComputeMode(handle)

    nvml = Hanging({"GPU-a": PROHIBITED, "GPU-b": DEFAULT})
    held = modes(nvml, root)
    with ThreadPoolExecutor() as threads:
        try:
            threads.submit(held.hold, ["GPU-a", "GPU-b"])
            assert asked.wait(10)
            assert threads.submit(held.hold, ["GPU-b"]).result(10) == {}
            assert nvml.modes == {"GPU-a": PROHIBITED, "GPU-b": EXCLUSIVE}
            ended = threads.submit(held.end, keep=())
            wait_until(lambda: held._ended)
        finally:
            goes_on.set()
        assert ended.result(10) == {}
    assert nvml.modes == {"GPU-a": PROHIBITED, "GPU-b": DEFAULT}
    assert ("GPU-a", EXCLUSIVE) in nvml.written
