"""
Questions to real MPS: each test is one, with the answer that the project counts on.

Where the answer is worse than that and documented, the test ends with `xfail` and says where. What was answered so far
is in docs/decisions/0032-what-a-real-gpu-did.md.
"""

import os
import signal
import socket
import time
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

from plugin.gpus.nvml import load_nvml
from plugin.mps.answers import server_pids
from plugin.mps.control import SOCKETS
from plugin.mps.process_sockets import bound_to
from plugin.mps.processes import holders
from plugin.usage.nvml_processes import read_processes
from policies.contract import MPS_PIPE_DIRECTORY
from tests.gpu.node import EVERYTHING_MIB, KEEPS_MODE, Node, runs, said
from tests.plugin.waiting import wait_until

DEVICE_UNAVAILABLE = 46
TOO_MANY_CLIENTS = 808
FILLS_THE_GPU = ("1056", "25")  # blocks and launches: 25 ms each in a tenth of an H100
A_FEW_MULTIPROCESSORS = ("8", "400")  # 0.3 ms each
CONTEXT_MIB = 1024  # a context and the granularity of allocations, generously
RECOVERS_WITHIN_SECONDS = 120.0
SILENCE_ENDS_WITHIN_SECONDS = 5.0


def test_a_share_holds_a_process_to_its_memory(node: Node) -> None:
    answer = node.ask("allocate", str(EVERYTHING_MIB), environment=node.environment(2))
    share_mib = node.gpu.memory_bytes // 5 // (1 << 20)
    assert answer["error"] == 2
    assert share_mib - CONTEXT_MIB <= answer["allocated_mib"] <= share_mib


def test_a_share_holds_a_process_to_its_threads(node: Node) -> None:
    whole = node.ask("info", environment=node.environment(10))["multiprocessors"]
    fifth = node.ask("info", environment=node.environment(2))["multiprocessors"]
    assert 0 < fifth <= whole / 5


def test_free_memory_is_the_share_and_total_memory_is_the_whole_gpu(node: Node) -> None:
    info = node.ask("info", environment=node.environment(2))
    assert info["free_mib"] <= node.gpu.memory_bytes // 5 // (1 << 20)
    assert info["total_mib"] == pytest.approx(node.gpu.memory_bytes / (1 << 20), abs=2)  # NVML's without the reserved
    assert info["property_mib"] == pytest.approx(node.gpu.memory_bytes / (1 << 20), abs=2)


def test_asynchronous_allocations_count_against_the_share(node: Node) -> None:
    answer = node.ask("allocate-async", str(EVERYTHING_MIB), environment=node.environment(2))
    assert answer["allocated_mib"] <= node.gpu.memory_bytes // 5 // (1 << 20)


def test_managed_memory_counts_against_the_share(node: Node) -> None:
    # No more than the card has free is asked for: beyond that a program can hang the GPU.
    share_mib = node.gpu.memory_bytes // 5 // (1 << 20)
    answer = node.ask("allocate-managed", str(share_mib * 3 // 2), environment=node.environment(2))
    assert 0 < answer["allocated_mib"] <= share_mib


@pytest.mark.skipif(KEEPS_MODE, reason="the compute mode stays as it is, so this question stays open")
def test_a_process_without_its_pipe_directory_finds_the_gpu_taken(node: Node) -> None:
    environment = {**node.environment(2), MPS_PIPE_DIRECTORY: "/nowhere"}
    assert node.ask("info", environment=environment)["error"] == DEVICE_UNAVAILABLE  # before the first client, too
    holder = node.start("hold", environment=node.environment(2))
    runs(holder)
    assert node.ask("info", environment=environment)["error"] == DEVICE_UNAVAILABLE
    assert said(holder)["error"] == 0


@pytest.mark.parametrize(
    "apart",
    [
        ["--ipc"],
        ["--ipc", "--net"],
        ["--ipc", "--mount"],
        ["--pid", "--fork", "--mount-proc"],
        ["--ipc", "--net", "--uts", "--cgroup", "--pid", "--fork", "--mount-proc", "--mount"],
        ["--user", "--map-root-user"],
    ],
    ids=" ".join,
)
def test_a_process_in_namespaces_of_its_own_is_held_all_the_same(node: Node, apart: list[str]) -> None:
    answer = node.ask("allocate", str(EVERYTHING_MIB), environment=node.environment(2), apart=apart)
    assert answer["allocated_mib"] <= node.gpu.memory_bytes // 5 // (1 << 20)
    assert answer["allocated_mib"] > 0


def test_a_process_of_another_user_waits_for_the_users_before_it_and_then_runs(node: Node) -> None:
    assert node.ask("info", environment=node.environment(2))["error"] == 0
    assert node.ask("info", environment=node.environment(2), user=65534)["error"] == 0


def killed_beside_a_neighbour(node: Node, *work: str) -> int:
    """Kill a program at work, and give the error that its neighbour has."""
    neighbour = node.start("hold", environment=node.environment(2))
    runs(neighbour)
    victim = node.start("work", "1000", *work, environment=node.environment(1))
    runs(victim)
    assert victim.stdin is not None
    victim.stdin.write(b"go\n")
    victim.stdin.flush()
    time.sleep(0.5)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    error = int(said(neighbour)["error"])
    wait_until(lambda: node.fault() is None, timeout_seconds=RECOVERS_WITHIN_SECONDS)
    assert node.ask("info", environment=node.environment(2))["error"] == 0
    return error


def test_a_program_killed_between_short_kernels_leaves_its_neighbour_alive(node: Node) -> None:
    assert killed_beside_a_neighbour(node, *A_FEW_MULTIPROCESSORS) == 0


def test_a_program_killed_in_a_long_kernel_leaves_its_neighbour_alive(node: Node) -> None:
    if killed_beside_a_neighbour(node, *FILLS_THE_GPU):
        pytest.xfail("it takes its neighbours along: docs/operations.md says so")


def test_a_program_that_the_daemon_ends_in_a_long_kernel_leaves_its_neighbour_alive(node: Node) -> None:
    neighbour = node.start("hold", environment=node.environment(2))
    runs(neighbour)
    victim = node.start("spin", "20", environment=node.environment(1))
    runs(victim)
    (server,) = server_pids(node.control().ask("get_server_list"))
    node.control().ask(f"terminate_client {server} {victim.pid}")
    victim.kill()
    victim.communicate()
    assert said(neighbour)["error"] == 0


def test_a_client_that_says_nothing_keeps_nobody_from_the_gpu(node: Node) -> None:
    (before,) = server_pids(node.control().ask("get_server_list"))
    control = f"{node.pipe_directory}/{node.gpu.uuid}/control"
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as silent:
        silent.connect(control)
        began = time.monotonic()
        assert node.ask("info", environment=node.environment(2))["error"] == 0
        assert time.monotonic() - began < SILENCE_ENDS_WITHIN_SECONDS
    assert server_pids(node.control().ask("get_server_list")) == (before,)
    assert node.fault() is None


def test_the_kernel_shows_both_sockets_of_the_daemon(node: Node) -> None:
    directory = Path(node.pipe_directory) / node.gpu.uuid
    (pid,) = (one.pid for one in holders() if (one.role, one.directory) == ("daemon", str(directory)))
    shown = bound_to(pid, SOCKETS, directory)
    assert {name: os.fstat(files[0]).st_ino for name, files in shown.items()} == {
        name: (directory / name).lstat().st_ino for name in SOCKETS
    }
    for file in chain(*shown.values()):
        os.close(file)


def test_a_user_other_than_root_gives_the_daemon_no_commands(node: Node) -> None:
    held = node.start("hold", environment=node.environment(2))
    runs(held)
    control = node.control()
    servers, limit = control.ask("get_server_list"), control.ask("get_default_active_thread_percentage")
    (server,) = server_pids(servers)
    for command in (
        "set_default_active_thread_percentage 1",
        f"set_active_thread_percentage {server} 1",
        f"terminate_client {server} {held.pid}",
        "quit -t 1",
    ):
        node.command_as(65534, command)
    assert control.ask("get_server_list") == servers
    assert control.ask("get_default_active_thread_percentage") == limit
    assert said(held)["error"] == 0


@pytest.mark.parametrize("name", ["control_lock", "log", "nvidia-cuda-mps-control.pid"])
def test_a_user_other_than_root_keeps_nobody_from_the_gpu_by_a_file_of_the_daemons(node: Node, name: str) -> None:
    with node.taken_by(65534, name):
        assert node.ask("info", environment=node.environment(2))["error"] == 0
    assert node.fault() is None


def test_a_program_in_a_user_namespace_without_a_mapping_gets_an_error_and_keeps_nobody_from_the_gpu(
    node: Node,
) -> None:
    assert node.ask("info", environment=node.environment(2), apart=["--user"])["error"] != 0
    assert node.ask("info", environment=node.environment(2))["error"] == 0
    assert node.fault() is None


def test_mps_serves_as_many_clients_as_the_node_counts_on(node: Node) -> None:
    most = node.gpu.mps_clients
    assert most
    clients = [node.start("hold", environment=node.environment(1)) for _ in range(most)]
    for client in clients:
        runs(client)
    assert node.ask("info", environment=node.environment(1))["error"] == TOO_MANY_CLIENTS
    assert {said(client)["error"] for client in clients} == {0}


def test_nvml_lists_each_client_with_its_memory_and_its_time_as_the_servers(node: Node) -> None:
    holder = node.start("hold", environment=node.environment(1))
    runs(holder)
    worker = node.start("spin", "6", environment=node.environment(1))
    runs(worker)
    time.sleep(3)
    nvml = load_nvml()
    nvml.nvmlInit()
    try:
        on_gpu = read_processes(nvml, now_seconds=time.time())[node.gpu.uuid]
    finally:
        nvml.nvmlShutdown()
    found = {one.pid: one for one in on_gpu.processes}
    (server,) = server_pids(node.control().ask("get_server_list"))
    assert on_gpu.lists_all
    assert all(found[pid].memory_bytes for pid in (holder.pid, worker.pid, server))
    assert found[server].sm_ratio
    assert found[worker.pid].sm_ratio is None
    assert said(worker)["error"] == 0
    assert said(holder)["error"] == 0


def test_after_a_fatal_fault_the_server_recovers_by_itself(node: Node) -> None:
    neighbour = node.start("hold", environment=node.environment(2))
    runs(neighbour)
    assert node.ask("fault", environment=node.environment(2))["error"] != 0
    assert said(neighbour)["error"] != 0
    wait_until(lambda: node.fault() is None, timeout_seconds=RECOVERS_WITHIN_SECONDS)
    assert node.ask("info", environment=node.environment(2))["error"] == 0
