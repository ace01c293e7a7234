import json
from pathlib import Path

import pytest

from plugin.mps import compute_mode
from plugin.mps.compute_mode import ComputeModes
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError

DEFAULT, PROHIBITED, EXCLUSIVE = 0, 2, 3


def modes(nvml: FakeModes, root: Path, *, boot_id: str = "this") -> ComputeModes:
    return ComputeModes(lambda: nvml, record=root / "modes.json", boot_id=boot_id)


def test_the_mode_is_set_and_what_was_found_is_put_back(root: Path) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT, "GPU-b": PROHIBITED})
    held = modes(nvml, root)
    assert held.hold(["GPU-a", "GPU-b"]) == {}
    assert nvml.modes == {"GPU-a": EXCLUSIVE, "GPU-b": EXCLUSIVE}
    assert held.release(keep=()) == {}
    assert nvml.modes == {"GPU-a": DEFAULT, "GPU-b": PROHIBITED}
    assert nvml.sessions == 0
    assert not (root / "modes.json").exists()


def test_a_mode_that_was_exclusive_before_stays_so(root: Path) -> None:
    nvml = FakeModes({"GPU-a": EXCLUSIVE})
    modes(nvml, root).hold(["GPU-a"])
    assert nvml.written == []
    modes(nvml, root).release(keep=())
    assert nvml.modes == {"GPU-a": EXCLUSIVE}


def test_what_was_found_is_still_known_after_a_kill(root: Path) -> None:
    nvml = FakeModes({"GPU-a": PROHIBITED})
    modes(nvml, root).hold(["GPU-a"])
    after = modes(nvml, root)
    after.hold(["GPU-a"])
    after.release(keep=())
    assert nvml.modes == {"GPU-a": PROHIBITED}


def test_a_reboot_makes_the_record_worthless(root: Path) -> None:
    nvml = FakeModes({"GPU-a": PROHIBITED})
    modes(nvml, root).hold(["GPU-a"])
    nvml.modes["GPU-a"] = DEFAULT
    after = modes(nvml, root, boot_id="the next")
    after.release(keep=())
    assert nvml.modes == {"GPU-a": DEFAULT}
    after.hold(["GPU-a"])
    after.release(keep=())
    assert nvml.modes == {"GPU-a": DEFAULT}


def test_a_mode_that_a_reset_took_is_set_again_and_the_first_one_is_still_what_is_put_back(root: Path) -> None:
    nvml = FakeModes({"GPU-a": PROHIBITED})
    held = modes(nvml, root)
    held.hold(["GPU-a"])
    nvml.modes["GPU-a"] = DEFAULT
    held.hold(["GPU-a"])
    assert nvml.modes == {"GPU-a": EXCLUSIVE}
    held.release(keep=())
    assert nvml.modes == {"GPU-a": PROHIBITED}


def test_a_record_that_is_lost_while_we_run_is_written_again_with_what_was_found_first(root: Path) -> None:
    nvml = FakeModes({"GPU-a": PROHIBITED})
    held = modes(nvml, root)
    held.hold(["GPU-a"])
    (root / "modes.json").unlink()
    held.hold(["GPU-a"])
    held.release(keep=())
    assert nvml.modes == {"GPU-a": PROHIBITED}
    nvml.modes["GPU-a"] = DEFAULT  # and another one that is found later is not mixed up with it
    held.hold(["GPU-a"])
    held.release(keep=())
    assert nvml.modes == {"GPU-a": DEFAULT}


def test_only_gpus_that_are_no_longer_held_are_put_back_where_that_is_asked_for(root: Path) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT, "GPU-b": DEFAULT})
    held = modes(nvml, root)
    held.hold(["GPU-a", "GPU-b"])
    held.release(keep=["GPU-b"])
    assert nvml.modes == {"GPU-a": DEFAULT, "GPU-b": EXCLUSIVE}


def test_after_the_end_nobody_sets_a_mode_again(root: Path) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT})
    held = modes(nvml, root)
    held.hold(["GPU-a"])
    assert held.end(keep=()) == {}
    assert held.hold(["GPU-a"]) == {"GPU-a": "compute modes were restored: gpu-share mps ends"}
    assert nvml.modes == {"GPU-a": DEFAULT}


def test_a_gpu_that_is_kept_exclusive_at_the_end_is_put_back_by_the_next_end(root: Path) -> None:
    nvml = FakeModes({"GPU-a": PROHIBITED, "GPU-b": DEFAULT})
    first = modes(nvml, root)
    first.hold(["GPU-a", "GPU-b"])
    assert first.end(keep=["GPU-a"]) == {}
    assert nvml.modes == {"GPU-a": EXCLUSIVE, "GPU-b": DEFAULT}
    assert modes(nvml, root).end(keep=()) == {}
    assert nvml.modes == {"GPU-a": PROHIBITED, "GPU-b": DEFAULT}


@pytest.mark.parametrize(
    ("number", "fix"), [(4, "run gpu-share mps as root"), (3, "share it by time-slicing or whole"), (99, "nvidia-smi")]
)
def test_a_gpu_whose_mode_cannot_be_set_says_why_and_the_others_are_held(root: Path, number: int, fix: str) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT, "GPU-b": DEFAULT})
    nvml.refuses["GPU-a"] = FakeNvmlError(number, "Refused")
    faults = modes(nvml, root).hold(["GPU-a", "GPU-b", "GPU-gone"])
    assert set(faults) == {"GPU-a", "GPU-gone"}
    assert faults["GPU-a"].startswith("the compute mode cannot be changed: NVML: Refused: ")
    assert fix in faults["GPU-a"]
    assert nvml.modes["GPU-b"] == EXCLUSIVE
    assert nvml.sessions == 0


def test_a_gpu_whose_driver_does_not_keep_the_mode_is_not_shared_while_it_does_not(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    nvml = FakeModes({"GPU-a": DEFAULT, "GPU-b": DEFAULT})
    nvml.ignores.add("GPU-a")
    held = modes(nvml, root)
    why = "the driver says that it has set EXCLUSIVE_PROCESS, and has not: programs would bypass MPS"
    assert held.hold(["GPU-a", "GPU-b"]) == held.hold(["GPU-a", "GPU-b"]) == {"GPU-a": why}
    assert [record.__dict__["gpu"] for record in caplog.records] == ["GPU-b"]
    nvml.ignores.clear()
    assert held.hold(["GPU-a", "GPU-b"]) == {}


def test_an_instance_that_loses_its_mode_again_is_told_of_again(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    nvml = FakeModes({"MIG-a": DEFAULT})
    held = modes(nvml, root)
    for ignores in (True, True, False, True):
        nvml.modes["MIG-a"] = DEFAULT
        nvml.ignores = {"MIG-a"} if ignores else set()
        assert held.hold(["MIG-a"]) == {}
        nvml.modes["MIG-a"] = DEFAULT if ignores else EXCLUSIVE
        held.hold(["MIG-a"])
    assert [record.message for record in caplog.records] == [
        "no EXCLUSIVE_PROCESS: programs can bypass MPS on the instance"
    ] * 2


def test_a_mode_that_was_put_back_is_not_put_back_again_where_that_could_not_be_recorded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT, "GPU-b": DEFAULT})
    held = modes(nvml, root)
    held.hold(["GPU-a", "GPU-b"])
    with monkeypatch.context() as full:
        full.setattr(compute_mode, "write_atomically", no_space)
        assert held.release(keep=["GPU-b"]) == {}
        nvml.modes["GPU-a"] = PROHIBITED  # by somebody else
        assert held.release(keep=["GPU-b"]) == {}
    assert (set(held.changed()), nvml.modes["GPU-a"]) == ({"GPU-b"}, PROHIBITED)
    held.hold(["GPU-a"])
    held.release(keep=())
    assert nvml.modes == {"GPU-a": PROHIBITED, "GPU-b": DEFAULT}


def test_a_mode_that_was_put_back_stays_so_where_it_can_be_taken_again_no_more(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT})
    held = modes(nvml, root)
    held.hold(["GPU-a"])
    with monkeypatch.context() as full:
        full.setattr(compute_mode, "write_atomically", no_space)
        full.setattr(Path, "unlink", no_space)
        assert held.release(keep=()) == {}
        nvml.modes["GPU-a"] = PROHIBITED  # by somebody else
        for _ in range(2):
            assert "cannot be recorded" in held.hold(["GPU-a"])["GPU-a"]
        assert held.changed() == frozenset()
        assert held.release(keep=()) == {}
        assert nvml.modes == {"GPU-a": PROHIBITED}
    assert held.hold(["GPU-a"]) == {}
    assert held.release(keep=()) == {}
    assert nvml.modes == {"GPU-a": PROHIBITED}


def no_space(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_nothing_is_changed_that_could_not_be_remembered(root: Path) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT})
    faults = modes(nvml, root / "missing").hold(["GPU-a"])
    assert "cannot be recorded" in faults["GPU-a"]
    assert nvml.modes == {"GPU-a": DEFAULT}


def test_an_nvml_that_does_not_start_is_a_fault_of_all_and_what_could_not_be_put_back_is_tried_again(
    root: Path,
) -> None:
    nvml = FakeModes({"GPU-a": DEFAULT})
    held = modes(nvml, root)
    held.hold(["GPU-a"])
    nvml.down = FakeNvmlError(9, "Driver Not Loaded")
    assert "load the NVIDIA driver" in held.hold(["GPU-a"])["GPU-a"]
    assert "load the NVIDIA driver" in held.release(keep=())["GPU-a"]
    nvml.down = None
    assert modes(nvml, root).release(keep=()) == {}
    assert nvml.modes == {"GPU-a": DEFAULT}


@pytest.mark.parametrize("content", ["", "[]", json.dumps({"boot_id": "this", "modes": {"GPU-a": "x"}})])
def test_a_record_that_cannot_be_read_is_none(root: Path, content: str) -> None:
    (root / "modes.json").write_text(content)
    nvml = FakeModes({"GPU-a": PROHIBITED})
    held = modes(nvml, root)
    assert held.release(keep=()) == {}
    held.hold(["GPU-a"])
    held.release(keep=())
    assert nvml.modes == {"GPU-a": PROHIBITED}
