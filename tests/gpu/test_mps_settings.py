"""What real MPS does with settings of the daemon's own: its default limits, its multi-user server."""

import os
import signal
from pathlib import Path

import pytest

from plugin.errors import ControlError
from plugin.gpus.gpu import Gpu
from plugin.mps.answers import keeps_memory_limit, percentage, server_pids
from plugin.mps.processes import holders
from policies.contract import MPS_MEMORY_LIMIT, MPS_PIPE_DIRECTORY, MPS_THREAD_PERCENTAGE
from tests.gpu.node import EVERYTHING_MIB, running, runs, said
from tests.plugin.waiting import wait_until

A_FIFTH_AT_MOST = 'share: {maximum: "0.2"}\n'


LIMITS = {
    "an unseen ordinal": "0=1000000M,1=4G",
    "an unseen UUID": "0=1000000M,GPU-00000000-0000-0000-0000-000000000000=4G",
    "words": "garbage",
    "no amount": "0=",
    "nothing": "0=0M",
    "above": "0=1000000M",
    "twice": "0=1000000M,0=2000000M",
    "negative": "0=-1M",
    "empty": "",
}
LIFT = {"an unseen ordinal", "an unseen UUID", "words", "no amount", "nothing"}  # seen of driver 580.159.04


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_of_a_programs_own_does_not_pass_the_daemons(gpu: Gpu, directory: Path, what: str) -> None:
    escape = {MPS_MEMORY_LIMIT: LIMITS[what]}
    with running(gpu, directory, policy=A_FIFTH_AT_MOST) as node:
        answer = node.ask("allocate", str(EVERYTHING_MIB), environment={**node.environment(2), **escape})
    assert answer["allocated_mib"] > 0
    passes = answer["allocated_mib"] > gpu.memory_bytes // 5 // (1 << 20)
    if passes and what in LIFT:
        pytest.xfail("it lifts the daemon's default as well: docs/security.md says so")
    assert not passes


def test_a_limit_by_uuid_is_applied_or_not(gpu: Gpu, directory: Path) -> None:
    # k8s-device-plugin#572. Whichever it is, gpu-share writes ordinals.
    with running(gpu, directory) as node:
        environment = node.environment(2)
        limit_mib = environment[MPS_MEMORY_LIMIT].removeprefix("0=")
        answer = node.ask(
            "allocate", str(EVERYTHING_MIB), environment={**environment, MPS_MEMORY_LIMIT: f"{gpu.uuid}={limit_mib}"}
        )
    assert answer["allocated_mib"] > 0
    if answer["allocated_mib"] > gpu.memory_bytes // 5 // (1 << 20):
        pytest.xfail("this driver does not apply a client's limit by UUID")


def test_the_daemon_keeps_limits_of_every_size_in_a_form_that_is_read(gpu: Gpu, directory: Path) -> None:
    with running(gpu, directory) as node:
        control = node.control()
        for mib in (100, 512, 1023, 1024, 3840, 5120, gpu.memory_bytes // (1 << 20)):
            control.ask(f"set_default_device_pinned_mem_limit 0 {mib}M")
            answer = control.ask("get_default_device_pinned_mem_limit 0")
            assert keeps_memory_limit(answer, mib), f"{mib}M is answered as {answer!r}"


def test_a_process_that_removes_its_limits_keeps_the_daemons_defaults(gpu: Gpu, directory: Path) -> None:
    with running(gpu, directory, policy=A_FIFTH_AT_MOST) as node:
        bare = {
            name: value
            for name, value in node.environment(2).items()
            if name not in (MPS_MEMORY_LIMIT, MPS_THREAD_PERCENTAGE)
        }
        whole = node.ask("info", environment={MPS_PIPE_DIRECTORY: bare[MPS_PIPE_DIRECTORY]})
        answer = node.ask("allocate", str(EVERYTHING_MIB), environment=bare)
    assert answer["allocated_mib"] <= gpu.memory_bytes // 5 // (1 << 20)
    assert whole["free_mib"] <= gpu.memory_bytes // 5 // (1 << 20)


def test_a_server_without_clients_is_listed_and_one_that_is_killed_is_replaced(gpu: Gpu, directory: Path) -> None:
    with running(gpu, directory) as node:

        def serving() -> tuple[int, ...]:
            try:
                return server_pids(node.control().ask("get_server_list"))
            except ControlError:  # while it takes note of the end
                return ()

        (first,) = serving()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: bool(serving()) and first not in serving(), timeout_seconds=30)
        wait_until(lambda: node.fault() is None, timeout_seconds=30)
        assert node.ask("info", environment=node.environment(2))["error"] == 0


def test_without_multi_user_a_client_of_another_user_replaces_the_server_and_the_gpu_is_ready(
    gpu: Gpu, directory: Path
) -> None:
    with running(gpu, directory) as node:
        (first,) = server_pids(node.control().ask("get_server_list"))
        assert node.ask("info", environment=node.environment(2), user=65534)["error"] == 0
        (second,) = server_pids(node.control().ask("get_server_list"))
        assert second != first
        assert node.fault() is None


def test_with_multi_user_processes_of_two_users_run_side_by_side(gpu: Gpu, directory: Path) -> None:
    with running(gpu, directory, "--multi-user") as node:
        holder = node.start("hold", environment=node.environment(2))
        runs(holder)
        assert node.ask("info", environment=node.environment(2), user=65534)["error"] == 0
        assert said(holder)["error"] == 0


def test_a_command_of_a_program_that_was_killed_is_carried_out_and_keeps_nobody_from_an_answer(
    gpu: Gpu, directory: Path
) -> None:
    with running(gpu, directory) as node:
        control, impatient = node.control(), node.control(timeout_seconds=0.5)
        (daemon,) = (one.pid for one in holders() if (one.role, one.directory) == ("daemon", node.pipes))
        os.kill(daemon, signal.SIGSTOP)
        try:
            with pytest.raises(ControlError, match="no answer within"):
                impatient.ask("set_default_active_thread_percentage 37")
            impatient.give_up()
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert percentage(control.ask("get_default_active_thread_percentage")) == 37
        assert node.fault() is None
