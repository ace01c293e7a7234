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


def test_what_another_thread_puts_back_meanwhile_is_no_fault_and_the_others_are_put_back(root: Path) -> None:
    asked, goes_on, begun = Event(), Event(), Event()

    class Slow(FakeModes):
        def nvmlInit(self) -> None:  # noqa: N802
            super().nvmlInit()
            if asked.is_set():
                begun.set()

        def nvmlDeviceSetComputeMode(self, handle: str, mode: int, /) -> None:  # noqa: N802
            if mode != EXCLUSIVE and not asked.is_set():
                asked.set()
                assert goes_on.wait(60)
            super().nvmlDeviceSetComputeMode(handle, mode)

    nvml = Slow({"GPU-a": DEFAULT, "GPU-b": DEFAULT})
    held = modes(nvml, root)
    held.hold(["GPU-a", "GPU-b"])
    with ThreadPoolExecutor() as threads:
        try:
            first = threads.submit(held.release, keep={"GPU-b"})
            assert asked.wait(10)
            second = threads.submit(held.release, keep=())
            assert begun.wait(10)
        finally:
            goes_on.set()
        assert (first.result(10), second.result(10)) == ({}, {})
    assert nvml.modes == {"GPU-a": DEFAULT, "GPU-b": DEFAULT}
