import os
import socket
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic

import grpc
import pytest

from plugin.errors import SocketError
from plugin.kubelet import ResourceServer
from plugin.registration import Pace, register
from plugin.service import Resource
from plugin.session import Session
from plugin.simulated_kubelet import SimulatedKubelet
from plugin.sockets import SocketIdentity, answers, identify, socket_path, target
from plugin.v1beta1 import api_pb2, api_pb2_grpc

StartPlugin = Callable[[Resource], ResourceServer]
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
    folder: Path, start_plugin: StartPlugin, resource: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket(socket.AF_UNIX) as kubelet:
        kubelet.bind(str(folder / "kubelet.sock"))
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
def test_a_new_kubelet_socket_is_enough_even_if_the_stream_goes_on(folder: Path) -> None:
    with SimulatedKubelet(folder) as successor:  # removes all sockets, and the first one's stream stays open
        wait_for_registration(successor, 1)


def test_a_kubelet_that_leaves_our_socket_alone_is_seen_by_its_own(registered: SimulatedKubelet, folder: Path) -> None:
    registered.socket.unlink()
    successor = SimulatedKubelet(folder)
    successor._listen()
    wait_for_registration(successor, 1)
    successor.stop()


def test_a_kubelet_that_is_slow_to_see_the_end_of_a_stream_does_not_disconnect_the_next(
    folder: Path, start_plugin: StartPlugin, resource: Resource
) -> None:
    class Slow(SimulatedKubelet):
        def _disconnect(self, resource: str) -> None:
            Event().wait(0.1)
            super()._disconnect(resource)

    with Slow(folder) as kubelet:
        server = start_plugin(resource)
        wait_for_registration(kubelet, 1)
        (folder / SOCKET).unlink()
        wait_for_registration(kubelet, 2)
        server.stop()


def test_a_kubelet_that_says_no_and_follows_all_the_same_is_not_asked_again(
    folder: Path, start_plugin: StartPlugin, resource: Resource
) -> None:
    class Late(SimulatedKubelet):
        def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: N802
            super().Register(request, context)
            self.wait_for(NAME)
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")

    with Late(folder) as kubelet:
        start_plugin(resource)
        wait_for_registration(kubelet, 1)


def test_its_own_socket_that_was_removed_is_made_again_and_registered_once(
    registered: SimulatedKubelet, folder: Path
) -> None:
    (folder / SOCKET).unlink()
    wait_for_registration(registered, 2)
    assert answers(folder / SOCKET)


def test_its_own_socket_that_was_replaced_is_made_again_and_registered_once(
    registered: SimulatedKubelet, folder: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder / "other"))
        (folder / "other").replace(folder / SOCKET)
        wait_for_registration(registered, 2)


def test_a_stream_that_the_kubelet_ended_leads_to_one_registration(registered: SimulatedKubelet) -> None:
    registered._clients[NAME].channel.close()
    wait_for_registration(registered, 2)


def test_a_kubelet_that_refuses_is_quoted_once_and_asked_again_ever_slower(
    folder: Path, start_plugin: StartPlugin, resource: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    class Refusing(SimulatedKubelet):
        def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: N802
            asked.append(monotonic())
            return super().Register(request, context)

    with Refusing(folder):
        start_plugin(replace(resource, name="no-extended-resource"))
        wait_until(lambda: len(asked) == 3)
    refusals = [record for record in caplog.records if record.message == "not registered, trying again"]
    (refusal,) = refusals
    assert vars(refusal)["reason"] == "UNKNOWN: the resource name no-extended-resource is invalid"
    assert 0.5 <= asked[1] - asked[0] < 0.95 * (asked[2] - asked[1])


def test_a_call_to_a_kubelet_that_never_answers_does_not_delay_the_end(
    folder: Path, start_plugin: StartPlugin, resource: Resource
) -> None:
    called, release = Event(), Event()

    class Hanging(SimulatedKubelet):
        def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: ARG002, N802
            called.set()
            release.wait(20)
            return api_pb2.Empty()

    with Hanging(folder):
        server = start_plugin(resource)
        assert called.wait(5)
        started = monotonic()
        server.stop()
        wait_until(lambda: not (folder / SOCKET).exists())
        assert monotonic() - started < 2
        release.set()


def test_the_end_removes_its_own_socket_and_nothing_else(
    kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource, folder: Path
) -> None:
    kubelet.start()
    (folder / "kubelet_internal_checkpoint").touch()
    server = start_plugin(resource)
    kubelet.wait_for(NAME)
    assert stat.S_IMODE((folder / SOCKET).lstat().st_mode) == 0o600
    server.stop()
    wait_until(lambda: not (folder / SOCKET).exists())
    kubelet.wait_until(lambda: kubelet.allocatable(NAME) == 0)
    assert {path.name for path in folder.iterdir()} == {"kubelet.sock", "kubelet_internal_checkpoint"}
    assert kubelet.capacity(NAME) == 20


def test_the_end_leaves_a_successors_socket_alone(resource: Resource, folder: Path) -> None:
    ours, theirs = (Session(resource, folder / SOCKET, wake=Event()) for _ in range(2))
    with theirs:
        ours.__enter__()
        theirs_again = Session(resource, folder / SOCKET, wake=Event())
        with theirs_again:
            ours.__exit__(None, None, None)
            assert theirs_again.owns_socket
            assert answers(folder / SOCKET)
    assert list(folder.iterdir()) == []


def test_a_socket_that_a_killed_process_left_is_replaced(
    kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource, folder: Path
) -> None:
    kubelet.start()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(folder / SOCKET))
    start_plugin(resource)
    wait_for_registration(kubelet, 1)


def test_a_folder_that_vanishes_is_survived(
    kubelet: SimulatedKubelet,
    start_plugin: StartPlugin,
    resource: Resource,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    elsewhere = folder.with_name(folder.name + "-moved")
    start_plugin(resource)
    wait_until((folder / SOCKET).exists)
    folder.rename(elsewhere)
    try:
        wait_until(lambda: "cannot serve, trying again" in caplog.messages)
    finally:
        elsewhere.rename(folder)
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


def test_with_two_plugins_at_once_the_end_of_the_first_stream_disconnects_the_second(
    kubelet: SimulatedKubelet, resource: Resource, folder: Path
) -> None:
    kubelet.start()
    with Session(resource, folder / "b.sock", wake=Event()) as second:
        with Session(resource, folder / "a.sock", wake=Event()):
            assert call_register(folder, "a.sock") is None
            assert call_register(folder, "b.sock") is None
            wait_until(lambda: second.is_watched)
        wait_until(lambda: second.stream_ended)
        assert kubelet.allocatable(NAME) == 0


@pytest.mark.parametrize(
    ("version", "name", "endpoint", "sentence"),
    [
        ("v1alpha", NAME, SOCKET, "version v1alpha is not supported"),
        ("v1beta1", "vgpu", SOCKET, "the resource name vgpu is invalid"),
        ("v1beta1", "kubernetes.io/vgpu", SOCKET, "is invalid"),
        ("v1beta1", "requests.a.b/vgpu", SOCKET, "is invalid"),
    ],
)
def test_the_simulated_kubelet_is_as_strict_as_the_real_one(
    kubelet: SimulatedKubelet, version: str, name: str, endpoint: str, sentence: str
) -> None:
    kubelet.start()
    request = api_pb2.RegisterRequest(version=version, endpoint=endpoint, resource_name=name)
    with grpc.insecure_channel(target(kubelet.socket)) as channel, pytest.raises(grpc.RpcError) as refusal:
        api_pb2_grpc.RegistrationStub(channel).Register(request)
    assert sentence in (refusal.value.details() or "")


def test_a_path_that_is_no_uri_is_served_all_the_same(folder: Path, resource: Resource) -> None:
    strange = folder / "a b%20#?ü"
    strange.mkdir()
    with SimulatedKubelet(strange) as kubelet, Session(resource, strange / SOCKET, wake=Event()):
        assert call_register(strange, SOCKET) is None
        kubelet.wait_for(NAME)


def test_a_path_too_long_for_a_socket_is_refused_with_its_length() -> None:
    with pytest.raises(SocketError, match="at most 107 bytes, this has 108: choose a shorter --kubelet-dir"):
        socket_path(Path("/" + "d" * 83), NAME)
    assert socket_path(Path("/" + "d" * 82), NAME).name == SOCKET


def test_two_resources_never_share_a_socket() -> None:
    assert socket_path(Path("/"), "a.b/c-d") != socket_path(Path("/"), "a.b-c/d")


def test_an_identity_changes_with_the_socket_and_not_with_its_labels(folder: Path) -> None:
    path = folder / "some.sock"
    identities = set()
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            identities.add(identify(path))
            path.chmod(0o644)
            identities.add(identify(path))
        wait_until(partial(file_system_time_moved_on, path))
        path.unlink()
    assert len(identities) == 3
    assert identify(path) is None


def file_system_time_moved_on(since: Path) -> bool:
    probe = since.with_name("probe")
    probe.touch()
    return probe.lstat().st_mtime_ns > since.lstat().st_mtime_ns


def test_the_pace_is_slower_with_each_refusal_and_fresh_with_a_new_kubelet() -> None:
    now = 100.0
    pace = Pace(lambda: now)
    old, new = SocketIdentity(1, 1, 1), SocketIdentity(1, 1, 2)
    waits = []
    for _ in range(6):
        assert pace.allows(old)
        pace.refused_by(old)
        assert not pace.allows(old)
        assert pace.allows(new)
        wait = 0.0
        while not pace.allows(old):
            wait += 0.5
            now += 0.5
        waits.append(wait)
    assert waits == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    pace.refused_by(new)
    now += 0.5
    assert pace.allows(new)


def call_register(folder: Path, endpoint: str) -> str | None:
    return register(
        folder / "kubelet.sock", endpoint=endpoint, resource_name=NAME, wake=Event(), stopping=lambda: False
    )


def wait_until(condition: Callable[[], bool], *, timeout_seconds: float = 10.0) -> None:
    """Look until *condition* holds; for what nothing announces."""
    deadline = monotonic() + timeout_seconds
    pause = Event()
    while not condition():
        assert monotonic() < deadline, "it did not happen in time"
        pause.wait(0.005)
