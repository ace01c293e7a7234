"""One GPU's keeper in its thread, with a stand-in for NVIDIA's program."""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from plugin.boot_clock import boot_seconds
from plugin.mps.keeper import Keeper
from plugin.mps.surroundings import Surroundings
from plugin.mps.tenancy import Tenancy
from plugin.pool import Gpu
from tests.plugin.mps.conftest import QUICK, UUID
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError
from tests.plugin.mps.standin import StandIn, alive
from tests.plugin.mps.tenants import held, kubelet
from tests.plugin.waiting import wait_until


@contextmanager
def running(keeper: Keeper) -> Iterator[Keeper]:
    ending = Event()
    thread = Thread(target=keeper.run, args=[ending])
    thread.start()
    try:
        yield keeper
    finally:
        ending.set()
        thread.join()


@pytest.fixture
def keeper(gpu: Gpu, surroundings: Surroundings, caplog: pytest.LogCaptureFixture) -> Keeper:
    caplog.set_level(logging.INFO)
    return Keeper(gpu, surroundings)


def is_now(keeper: Keeper, state: str, why: str = "") -> None:
    wait_until(lambda: keeper.report.state == state and why in keeper.report.why)


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == message]


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


def test_the_ceiling_is_told_to_the_daemon_and_to_its_servers_and_rises(keeper: Keeper, standin: StandIn) -> None:
    keeper.ceiling_vgpus = 2
    with running(keeper):
        wait_until(lambda: f"set_default_device_pinned_mem_limit {UUID} 28754M" in standin.commands())
        assert "set_default_active_thread_percentage 20" in standin.commands()
        standin.behave(servers={"41": "INITIALIZING", "42": "ACTIVE"})
        wait_until(lambda: f"set_device_pinned_mem_limit 42 {UUID} 28754M" in standin.commands())
        assert "set_active_thread_percentage 41 20" not in standin.commands()  # it could not answer yet
        assert "set_active_thread_percentage 42 20" in standin.commands()
        standin.forget()
        keeper.ceiling_vgpus = 5
        wait_until(lambda: f"set_device_pinned_mem_limit 42 {UUID} 71885M" in standin.commands())
        assert {
            "set_default_active_thread_percentage 50",
            f"set_default_device_pinned_mem_limit {UUID} 71885M",
            "set_active_thread_percentage 42 50",
        } <= set(standin.commands())


def test_a_server_is_started_after_the_defaults_and_before_the_first_client(keeper: Keeper, standin: StandIn) -> None:
    with running(keeper):
        is_now(keeper, "ready")
        commands = standin.commands()
    defaults = [at for at, command in enumerate(commands) if command.startswith("set_default_")]
    assert max(defaults) < commands.index("start_server -uid 0") < commands.index("get_server_list")
    assert commands.count("start_server -uid 0") == 1


def test_a_daemon_that_listens_a_little_late_is_told_its_limits_and_to_start_a_server_all_the_same(
    keeper: Keeper, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    standin.behave(late=0.3)
    with running(keeper):
        is_now(keeper, "ready")
    assert "start_server -uid 0" in standin.commands()
    assert said(caplog, "MPS limits not set") == []


def test_a_daemon_that_starts_no_server_by_itself_is_good_all_the_same(
    gpu: Gpu, surroundings: Surroundings, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    standin.behave(hang=["start_server"])
    with running(Keeper(gpu, replace(surroundings, timing=replace(QUICK, start=1.0)))) as keeper:
        is_now(keeper, "ready")
    (warning,) = said(caplog, "no MPS server before the first client: until then a program can go past MPS")
    assert warning["reason"] == "start_server -uid 0: no answer within 1 s"


def test_a_daemon_that_was_started_again_is_told_again(keeper: Keeper, standin: StandIn, pipes: Path) -> None:
    limit = "set_default_active_thread_percentage 100"
    with running(keeper):
        wait_until(lambda: f"get_default_device_pinned_mem_limit {UUID}" in standin.commands())
        standin.forget()
        for one in alive(pipes):
            os.kill(one.pid, signal.SIGKILL)
        wait_until(lambda: limit in standin.commands())


def test_what_was_told_is_not_told_again_at_each_look(keeper: Keeper, standin: StandIn) -> None:
    with running(keeper):
        wait_until(lambda: standin.commands().count("get_server_list") > 4)
    assert sorted(
        command.split()[0] for command in standin.commands() if "limit" in command or "thread" in command
    ) == [
        "get_default_active_thread_percentage",
        "get_default_device_pinned_mem_limit",
        "set_default_active_thread_percentage",
        "set_default_device_pinned_mem_limit",
    ]


def test_a_limit_that_somebody_changed_is_set_again_with_a_warning(
    gpu: Gpu, surroundings: Surroundings, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = Keeper(gpu, replace(surroundings, timing=replace(surroundings.timing, limits=0.1)))
    keeper.ceiling_vgpus = 2
    with running(keeper):
        wait_until(lambda: f"get_default_device_pinned_mem_limit {UUID}" in standin.commands())
        standin.forget()
        keeper._daemon.control.ask("set_default_active_thread_percentage 100")  # as a tenant can
        wait_until(lambda: "set_default_active_thread_percentage 20" in standin.commands())
    (line,) = said(caplog, "somebody changed an MPS limit: set again")
    assert (line["expected"], line["got"]) == ("20.0", "'100.0'")


@pytest.mark.parametrize(
    "lie",
    [
        {"get_default_active_thread_percentage": "unknown command"},
        {"get_default_device_pinned_mem_limit": "no limit"},
        {"get_default_device_pinned_mem_limit": f"{UUID}: 0M"},
    ],
)
def test_a_limit_that_a_daemon_does_not_keep_is_a_warning_and_the_gpu_is_ready_all_the_same(
    keeper: Keeper, standin: StandIn, caplog: pytest.LogCaptureFixture, lie: dict[str, str]
) -> None:
    standin.behave(lie=lie)
    with running(keeper):
        wait_until(lambda: bool(said(caplog, "MPS limit not kept")))
        is_now(keeper, "ready")


def test_limits_that_cannot_be_set_are_a_warning_once_and_tried_again(
    gpu: Gpu, surroundings: Surroundings, standin: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = Keeper(gpu, replace(surroundings, timing=replace(surroundings.timing, answer=0.3)))
    standin.behave(hang=["set_default_active_thread_percentage"])
    with running(keeper):
        wait_until(lambda: standin.commands().count("set_default_active_thread_percentage 100") >= 2)
        is_now(keeper, "ready")
        standin.behave()
        wait_until(lambda: f"set_default_device_pinned_mem_limit {UUID} 143771M" in standin.commands())
    assert len(said(caplog, "MPS limits not set")) == 1


def test_a_slow_daemon_is_told_its_limits_over_several_looks_so_that_each_look_is_in_time(
    gpu: Gpu, surroundings: Surroundings, standin: StandIn
) -> None:
    keeper = Keeper(gpu, replace(surroundings, timing=replace(QUICK, answer=0.5)))
    with running(keeper):
        is_now(keeper, "ready")
        standin.behave(slow=0.2, servers={"41": "ACTIVE", "42": "ACTIVE"})
        wait_until(lambda: "get_server_status 42" in standin.commands())
        standin.forget()
        wait_until(lambda: f"get_device_pinned_mem_limit 42 {UUID}" in standin.commands(), timeout_seconds=30)
        standin.behave()
    assert "get_server_list" in standin.commands()  # between the first limit and the last


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
