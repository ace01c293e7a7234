import os
import socket
import stat
import threading
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic

import grpc
import pytest

from plugin.device_plugin.service import Resource
from plugin.device_plugin.v1beta1 import api_pb2
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.sockets import answers
from tests.plugin.conftest import StartPlugin
from tests.plugin.device_plugin.hanging_kubelet import HangingKubelet
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
SOCKET = "gpu-share.dev_vgpu.sock"


def wait_for_registration(kubelet: SimulatedKubelet, number: int) -> None:
    """Wait for that registration, no longer than a second, and see that no other follows it."""
    kubelet.wait_until(
        lambda: len(kubelet.registrations) >= number and kubelet.allocatable(NAME) == 20, timeout_seconds=1.0
    )
    with pytest.raises(TimeoutError):
        kubelet.wait_until(lambda: len(kubelet.registrations) > number, timeout_seconds=0.9)
    assert kubelet.allocatable(NAME) == 20


def test_it_registers_when_the_kubelet_comes(
    kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    start_plugin(resource)
    wait_until(lambda: "waiting for the kubelet" in caplog.messages)
    kubelet.start()
    wait_for_registration(kubelet, 1)


def test_it_registers_when_a_dead_kubelets_socket_is_answered_again(
    kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    kubelet.crash()
    assert kubelet.socket.exists()
    start_plugin(resource)
    wait_until(lambda: any("does not answer" in str(vars(record).get("reason")) for record in caplog.records))
    kubelet.start()
    wait_for_registration(kubelet, 1)
    assert caplog.messages.count("waiting for the kubelet") == 1


def test_a_socket_that_is_bound_and_only_later_listened_on_is_not_given_up(
    directory: Path, start_plugin: StartPlugin, resource: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket(socket.AF_UNIX) as kubelet:
        kubelet.bind(str(directory / "kubelet.sock"))
        start_plugin(resource)
        wait_until(lambda: "waiting for the kubelet" in caplog.messages)
        kubelet.listen()
        kubelet.settimeout(1.0)
        kubelet.accept()[0].close()


def test_each_restart_of_the_kubelet_leads_to_one_registration(
    registered: SimulatedKubelet,
) -> None:
    for number in range(2, 5):
        registered.restart()
        wait_for_registration(registered, number)


def test_a_crash_of_the_kubelet_leads_to_one_registration(registered: SimulatedKubelet) -> None:
    registered.crash()
    registered.start()
    wait_for_registration(registered, 2)


@pytest.mark.usefixtures("registered")
def test_a_new_kubelet_socket_is_enough_even_if_the_stream_goes_on(directory: Path) -> None:
    with SimulatedKubelet(directory) as successor:  # removes all sockets, and the first one's stream stays open
        wait_for_registration(successor, 1)


def test_a_kubelet_that_leaves_our_socket_alone_is_seen_by_its_own(
    registered: SimulatedKubelet, directory: Path
) -> None:
    registered.socket.unlink()
    successor = SimulatedKubelet(directory)
    successor._listen()
    wait_for_registration(successor, 1)
    successor.stop()


def test_a_kubelet_that_is_slow_to_see_the_end_of_a_stream_does_not_disconnect_the_next(
    directory: Path, start_plugin: StartPlugin, resource: Resource
) -> None:
    class Slow(SimulatedKubelet):
        def _disconnect(self, resource: str) -> None:
            Event().wait(0.1)
            super()._disconnect(resource)

    with Slow(directory) as kubelet:
        server = start_plugin(resource)
        wait_for_registration(kubelet, 1)
        (directory / SOCKET).unlink()
        wait_for_registration(kubelet, 2)
        server.stop()


def test_a_kubelet_that_says_no_and_follows_all_the_same_is_not_asked_again(
    directory: Path, start_plugin: StartPlugin, resource: Resource
) -> None:
    class Late(SimulatedKubelet):
        def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: N802
            super().Register(request, context)
            self.wait_for(NAME)
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")

    with Late(directory) as kubelet:
        start_plugin(resource)
        wait_for_registration(kubelet, 1)


def test_its_own_socket_that_was_removed_is_made_again_and_registered_once(
    registered: SimulatedKubelet, directory: Path
) -> None:
    (directory / SOCKET).unlink()
    wait_for_registration(registered, 2)
    assert answers(directory / SOCKET)


def test_its_own_socket_that_was_replaced_is_made_again_and_registered_once(
    registered: SimulatedKubelet, directory: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(directory / "other"))
        (directory / "other").replace(directory / SOCKET)
        wait_for_registration(registered, 2)


def test_a_stream_that_the_kubelet_ended_leads_to_one_registration(registered: SimulatedKubelet) -> None:
    registered._clients[NAME].channel.close()
    wait_for_registration(registered, 2)


def test_a_kubelet_that_rejects_is_quoted_once_and_asked_again_ever_slower(
    directory: Path, start_plugin: StartPlugin, resource: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    class Rejecting(SimulatedKubelet):
        def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: N802
            asked.append(monotonic())
            return super().Register(request, context)

    with Rejecting(directory):
        start_plugin(replace(resource, name="no-extended-resource"))
        wait_until(lambda: len(asked) == 3)
    rejections = [record for record in caplog.records if record.message == "not registered, trying again"]
    (rejection,) = rejections
    assert vars(rejection)["reason"] == "UNKNOWN: the resource name no-extended-resource is invalid"
    assert asked[1] - asked[0] >= 0.5
    assert asked[2] - asked[1] >= 0.95


def test_a_call_to_a_kubelet_that_never_answers_does_not_delay_the_end(
    directory: Path, start_plugin: StartPlugin, resource: Resource
) -> None:
    with HangingKubelet(directory) as kubelet:
        server = start_plugin(resource)
        assert kubelet.called.wait(5)
        started = monotonic()
        server.stop()
        wait_until(lambda: not (directory / SOCKET).exists())
        assert monotonic() - started < 2
        kubelet.release.set()


def test_the_end_removes_its_own_socket_and_nothing_else(
    kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource, directory: Path
) -> None:
    kubelet.start()
    (directory / "kubelet_internal_checkpoint").touch()
    server = start_plugin(resource)
    kubelet.wait_for(NAME)
    assert stat.S_IMODE((directory / SOCKET).lstat().st_mode) == 0o600
    server.stop()
    wait_until(lambda: not (directory / SOCKET).exists())
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 0)
    assert {path.name for path in directory.iterdir()} == {"kubelet.sock", "kubelet_internal_checkpoint"}
    assert kubelet.capacity(NAME) == 20


def test_a_socket_that_a_killed_process_left_is_replaced(
    kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource, directory: Path
) -> None:
    kubelet.start()
    (directory / SOCKET).with_suffix(".new").touch()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(directory / SOCKET))
    start_plugin(resource)
    wait_for_registration(kubelet, 1)


def test_a_directory_that_vanishes_is_survived(
    kubelet: SimulatedKubelet,
    start_plugin: StartPlugin,
    resource: Resource,
    directory: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    elsewhere = directory.with_name(directory.name + "-moved")
    start_plugin(resource)
    wait_until((directory / SOCKET).exists)
    directory.rename(elsewhere)
    try:
        wait_until(lambda: "cannot serve, trying again" in caplog.messages)
    finally:
        elsewhere.rename(directory)
    kubelet.start()
    kubelet.wait_for(NAME)


def test_restarts_leak_neither_descriptors_nor_threads(registered: SimulatedKubelet) -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208 - counted, not walked

    registered.restart()
    registered.wait_for(NAME)
    before = held()
    for _ in range(15):
        registered.restart()
        registered.wait_for(NAME)
    # gRPC lets go of a closed connection a moment later.
    wait_until(lambda: all(now <= then + 2 for now, then in zip(held(), before, strict=True)))
