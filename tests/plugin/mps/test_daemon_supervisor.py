"""One GPU's keeper in its thread, with a stand-in for NVIDIA's program."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from plugin.boot_clock import boot_seconds
from plugin.gpus.gpu import Gpu
from plugin.mps.daemon_supervisor import Keeper
from plugin.mps.surroundings import Surroundings
from plugin.mps.tenancy import Tenancy
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError
from tests.plugin.mps.kept import is_now, running, said
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until


def test_a_daemon_is_started_in_exclusive_mode_and_watched_until_the_end(
    keeper: Keeper, nvml: FakeModes, standin: StandIn, pipes: Path
) -> None:
    is_now(keeper, "starting")
    with running(keeper):
        is_now(keeper, "ready")
        assert nvml.modes == {UUID: 3}
        assert keeper.report.why == ""
        first = keeper.report.checked_seconds
        wait_until(lambda: keeper.report.checked_seconds > first)
        assert 0 <= boot_seconds() - keeper.report.checked_seconds < 60
    is_now(keeper, "stopped")
    assert list(alive(pipes)) == []
    assert len(standin.starts()) == 1


def test_a_daemon_that_dies_is_started_again(keeper: Keeper, standin: StandIn, pipes: Path) -> None:
    with running(keeper):
        is_now(keeper, "ready")
        for one in alive(pipes):
            os.kill(one.pid, signal.SIGKILL)
        is_now(keeper, "failed", "the daemon is gone; the next start is after a pause of 1 s")
        is_now(keeper, "ready")
    assert len(standin.starts()) == 2


def test_a_daemon_that_hangs_is_not_ready_at_once_and_ended_after_five_looks(
    gpu: Gpu, surroundings: Surroundings, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = Keeper(gpu, replace(surroundings, timing=replace(surroundings.timing, answer=0.4, quit=0.1, kill=0.2)))
    with running(keeper):
        is_now(keeper, "ready")
        standin.behave(hang=["get_server_list", "quit"])
        is_now(keeper, "failed", "get_server_list: no answer within 0.4 s")
        is_now(keeper, "failed", "5 times in a row; the next start is after a pause of")
        standin.behave()
        is_now(keeper, "ready")
    assert len(standin.starts()) == 2
    assert caplog.text.count("keeping the MPS daemon failed") == 0


def test_one_silence_does_not_end_anyones_context(keeper: Keeper, standin: StandIn, pipes: Path) -> None:
    with running(keeper):
        is_now(keeper, "ready")
        (daemon,) = alive(pipes)
        standin.behave(lie={"get_server_list": "garbage"})
        is_now(keeper, "failed", "'garbage'")
        standin.behave()
        is_now(keeper, "ready")
        assert list(alive(pipes)) in ([daemon], [])  # unless five looks came before
    assert len(standin.starts()) <= 2


def test_a_fault_is_reported_with_who_lost_their_contexts_and_left_to_recover(
    gpu: Gpu, root: Path, surroundings: Surroundings, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    socket = root / "kubelet"
    keeper = Keeper(gpu, replace(surroundings, tenancy=Tenancy(socket, "gpu-share.dev/vgpu")))
    others = held("team/elsewhere", "GPU-other", vgpus=1)
    with kubelet(socket, held("team/a", UUID, vgpus=2), others), running(keeper):
        standin.behave(servers={"42": "ACTIVE"})
        is_now(keeper, "ready")
        standin.behave(servers={"42": "FAULT"})
        is_now(keeper, "fault", "a fatal fault of one client ended the contexts of all")
        wait_until(lambda: any(line["state"] == "fault" for line in said(caplog, "MPS daemon")))
        (line,) = (line for line in said(caplog, "MPS daemon") if line["state"] == "fault")
        assert line["tenants"] == ("team/a/main",)
        assert line["levelname"] == "WARNING"
        standin.behave(servers={"42": "ACTIVE"})
        is_now(keeper, "ready")
    assert len(standin.starts()) == 1


def test_a_gpu_whose_mode_cannot_be_set_has_no_daemon_and_says_why(
    keeper: Keeper, nvml: FakeModes, standin: StandIn
) -> None:
    nvml.refuses[UUID] = FakeNvmlError(4, "Insufficient Permissions")
    with running(keeper):
        is_now(keeper, "failed", "NVML: Insufficient Permissions: run gpu-share mps as root")
        assert standin.starts() == []
        nvml.refuses.clear()
        is_now(keeper, "ready")


def test_a_gpu_that_loses_its_mode_later_is_not_ready_and_its_daemon_goes_on(
    keeper: Keeper, standin: StandIn, pipes: Path
) -> None:
    with running(keeper):
        is_now(keeper, "ready")
        keeper.blocked = "the compute mode cannot be changed"
        is_now(keeper, "failed", "the compute mode cannot be changed")
        keeper.blocked = ""
        is_now(keeper, "ready")
        assert len(list(alive(pipes))) == 1
    assert len(standin.starts()) == 1


def test_a_start_that_fails_is_tried_again_with_its_reason_in_the_state(keeper: Keeper, standin: StandIn) -> None:
    standin.behave(start={"*": "no CUDA-capable device"})
    with running(keeper):
        is_now(keeper, "failed", "'no CUDA-capable device'; the next start is after a pause of 1 s")
        standin.behave()
        is_now(keeper, "ready")


def test_an_end_while_the_daemon_starts_asks_nothing_more_of_it(
    gpu: Gpu, surroundings: Surroundings, standin: StandIn, pipes: Path
) -> None:
    standin.behave(mute=True)
    keeper = Keeper(gpu, replace(surroundings, timing=replace(QUICK, start=1.0)))
    ending = Event()
    started = keeper._daemon.control.start

    def ends_meanwhile(*flags: Any, **options: Any) -> None:
        ending.set()
        standin.behave()
        started(*flags, **options)

    keeper._daemon.control.start = ends_meanwhile  # type: ignore[method-assign]
    keeper.run(ending)
    assert standin.commands() == ["quit"]
    assert (keeper.report.state, list(alive(pipes))) == ("stopped", [])


def test_an_error_of_our_own_is_logged_and_does_not_end_the_watch(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(keeper):
        is_now(keeper, "ready")
        with monkeypatch.context() as patched:
            patched.setattr(keeper._daemon, "look", lambda: 1 / 0)
            is_now(keeper, "failed", "an error in gpu-share itself")
        is_now(keeper, "ready")
    assert "ZeroDivisionError" in caplog.text
